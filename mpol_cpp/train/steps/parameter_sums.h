#pragma once

#include <vector>

#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::detail {

/// The sum of all parameters after an update, () float64 on their device: no number where one of them is none, or where Adam's
/// second moment has overflowed, which holds the parameter where it is and must not pass for a fit.
Tensor sum_of_parameters(OptimizerKind kind, const std::vector<NamedParameter>& parameters);

}  // namespace mpol::detail
