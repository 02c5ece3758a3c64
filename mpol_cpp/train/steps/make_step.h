#pragma once

#include <memory>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/train/steps/step.h>

namespace mpol {

/// The step that options ask for; automatic takes the fastest that applies.
/// @throws ValueError when the kind that was asked for does not apply: the message says why and what does
std::unique_ptr<Step> make_step(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options);

}  // namespace mpol
