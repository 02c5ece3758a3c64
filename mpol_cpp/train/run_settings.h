#pragma once

#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::detail {

/// Every setting that decides what a fit gives, by name: those of the optimiser, the objective, the grid and the shapes,
/// and the fingerprint of the options. Epochs, device, step and checkpoints are not among them.
/// @throws ValueError for a fingerprint that is not "key = value"
Metadata run_settings(ImageModel& model, const Objective& objective, const TrainOptions& options);

}  // namespace mpol::detail
