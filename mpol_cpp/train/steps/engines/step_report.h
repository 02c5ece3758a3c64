#pragma once

#include <torch/types.h>

namespace mpol {

/// What one step reports, on its device; nothing has waited for it.
struct StepReport {
  torch::Tensor losses;          ///< (columns, problems) float64, before the update, in the order of Objective::columns()
  torch::Tensor parameters_sum;  ///< () float64, sum of all parameters after the update: finite only when each of them is, and
                                 ///< Adam's moments
};

}  // namespace mpol
