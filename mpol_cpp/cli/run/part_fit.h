#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/cli/options/sky_file.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// What a fit is divided by and made of, over all channels.
struct FitSize {
  double normalizer = 0;
  std::int64_t samples = 0, visibilities = 0;
  std::int64_t cells = 0;  ///< that hold samples

  /// That of one likelihood, as --normalize says, whose cells are so many.
  static FitSize of(const std::shared_ptr<Likelihood>& likelihood, std::int64_t cells, const ImageOptions& options);
};

/// What all parts of a fit have in common.
struct FitPlan {
  const ImageOptions& options;
  const RunRecord& record;
  std::filesystem::path state;  ///< the folder in which the run keeps what it goes on from
  std::vector<Term> terms;
  std::optional<DirtyPeaks> peaks;                    ///< where weights depend on them, and so on what the fit shows
  std::vector<ChannelSignal> signals;                 ///< of all channels, where each has weights of its own
  double normalizer;                                  ///< of all channels
  SkyOffset center;                                   ///< of the image from the phase centre
  std::string label = {};                             ///< what its warnings begin with
  std::optional<std::int64_t> channels_at_once = {};  ///< where there are several groups of them
};

/// The part of a fit that one rank makes.
struct PartToFit {
  FitData data;
  std::shared_ptr<Likelihood> likelihood;  ///< of these data, on the device
  torch::Device device;
  std::shared_ptr<Communicator> ranks = {};  ///< that fit other channels of the cube; empty: this is all of it
  PlaceInCube place = {};                    ///< of the channels in the cube
};

/// What a fit gave.
struct FittedPart {
  TrainResult result;
  GriddedNet model{nullptr};
  std::optional<Objective> objective;
  std::vector<Term> terms;          ///< of all channels, those of the objective
  std::optional<FitTraits> traits;  ///< where the weights were set anew for them, and the fit was made again
  Tensor sky;  ///< (nchan, npix, npix) float64, on the CPU, Jy/arcsec^2, of all channels; undefined on all ranks but the first

  bool ended() const;  ///< not by an interruption or a divergence
};

/// Makes the model and fits it. The first rank alone says how far it is. Where the plan has weights that depend on the data, and
/// the fit shows another noise than the data's weights say, or a source that fills little or much of the field, it goes on with
/// weights for these.
FittedPart fit_part(const FitPlan& plan, const PartToFit& part);

}  // namespace mpol::cli
