#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/ops/nufft/nufft_plan.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol::gridding {

using torch::Tensor;

/// Samples [begin, end) of a data channel, at u, v in wavelengths, float64.
struct SampleRange {
  std::int64_t channel, begin, end;
  const Tensor &u, &v;
};

/// An image of samples among those that are made together.
struct ImageOfSamples {
  double scale;       ///< of the sum
  Tensor image;       ///< (npix, npix) float64 on the CPU, contiguous, sky orientation; overwritten
  Tensor model = {};  ///< another such image, whose visibilities at the samples its values are made of; undefined: none
};

/// Writes what each sample of a range adds to each image: (end - begin) complex128 on the CPU, contiguous; undefined for images
/// that are not made in this pass. Those of an image with a model hold the model's, Jy where it is in Jy/pixel.
using SampleValues = std::function<void(const SampleRange& range, std::span<const Tensor> values)>;

/// Images of samples at their own u, v, by nonuniform transforms:
///
///   image(l, m) = scale Re sum_k V_k exp(2 pi i (u_k l + v_k m))
///
/// Samples are transformed in blocks that add to fine grids, one for each image and one for each model; images whose grids fit
/// the working storage together are made in one pass, in which points are sorted once for all. Where one alone does not fit,
/// it is made in square parts, each with a pass over the samples, whose phases are turned to the part's middle. The result is
/// the same bit for bit for any number of threads.
class SampleImage {
 public:
  /// How an image is made.
  enum class Cut {
    allowed,  ///< in parts where it has to be
    none      ///< as a whole, however much storage that takes: for images with a model
  };

  /// The finest tolerance of transforms.
  static constexpr double finest = 1e-12;

  /// @param working_bytes  what may be used above the image; blocks of samples and parts of the image are as large as that
  ///                       allows, but at least some thousand samples and 64 x 64 pixels
  /// @param tolerance      error relative to the norm of an image
  SampleImage(const GridCoords& coords, Baselines baselines, std::int64_t working_bytes, Cut cut = Cut::allowed,
              double tolerance = finest);

  /// @param channels  data channels that are added up
  /// @param images    those with a model need Cut::none
  /// @param values    asked for one block of a channel after the other, in each pass
  void make(const std::vector<std::int64_t>& channels, std::span<const ImageOfSamples> images, const SampleValues& values) const;

  /// Parts along each axis of an image.
  std::int64_t parts() const { return parts_; }

 private:
  using Plan = ops::NufftPlan<double>;

  struct Block;
  struct Pass;

  std::unique_ptr<Plan> plan_of(const Tensor& u, const Tensor& v) const;
  std::int64_t grids_at_once() const;
  void make_part(const std::vector<std::int64_t>& channels, const Pass& pass, const SampleValues& values, std::int64_t row,
                 std::int64_t column) const;

  GridCoords coords_;
  Baselines baselines_;
  std::int64_t working_bytes_, parts_, part_npix_, grid_bytes_;
  double tolerance_;
  std::unique_ptr<Plan> finish_;  // without points
};

}  // namespace mpol::gridding
