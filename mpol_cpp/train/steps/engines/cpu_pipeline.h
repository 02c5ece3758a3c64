#pragma once

#include <memory>
#include <vector>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/ops/fused/cpu/fused_pipeline.h>

/// What the fused step and the fused loss share: the passes over the images, and the losses that come of them.
namespace mpol::detail {

/// The passes that work out an objective at base pixels like those of a model, for which obstacle_to_fusing() is empty.
template <typename T>
std::unique_ptr<ops::FusedPipeline<T>> make_cpu_pipeline(const ImageModel& model, const Objective& objective);

/// The losses in the order of Objective::columns(): (columns, problems) float64.
/// @param values  of each problem
Tensor loss_table(const std::vector<ops::FusedValues>& values, const Objective& objective);

}  // namespace mpol::detail
