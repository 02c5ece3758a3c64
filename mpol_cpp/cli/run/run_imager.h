#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include <mpol_cpp/calibration/block_calibration.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/components/point_fit.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/models/gridded_net.h>

namespace mpol::cli {

/// What is fitted with the image before the run's own fit (--fit-blocks, --points) works on this.
struct DataStage {
  const ImageOptions& options;
  RunRecord& record;  ///< gets lines for HISTORY
  const GridCoords& coords;
  torch::Device device;
  std::filesystem::path state;  ///< the folder in which it is kept
};

/// Which data channels feed which image channel.
ChannelMap channel_map(const ImageOptions& options, std::int64_t nchan);

/// Images of the run's own likelihood, priors and solver, each from where the last one ended. Regularizers whose weight is yet to
/// be searched have that with which a search begins.
class RunImager final : public CalibrationImager, public PointImager {
 public:
  /// @param kept_in  the file of the state's folder that holds what state() gives
  RunImager(const DataStage& stage, const char* kept_in);

  Tensor image_of(const Visibilities& data) override;
  Tensor image_of(const Visibilities& rest, const Beside& beside) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override { begin_from_ = state; }

 private:
  void begin(const FitData& fit);

  const DataStage& stage_;
  const char* kept_in_;
  ImageOptions options_;
  std::optional<GriddedNet> model_;
  NamedTensors begin_from_;
};

}  // namespace mpol::cli
