#pragma once

#include <cstddef>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/calibration/gain_fit.h>

namespace mpol::detail {

using torch::Tensor;

/// Gains as numbers: shift to the East and North, ln a, ln s of each block, (4 blocks) float64.
Tensor numbers_of(const std::vector<BlockGain>& gains);
std::vector<BlockGain> gains_of(const Tensor& numbers);
/// What each number is known to, 1 where it is not fitted.
Tensor errors_of(const std::vector<FittedGain>& fits);

/// The rounds of a calibration as steps x -> g(x) of a fixed-point iteration.
class GainSteps {
 public:
  /// The last rounds, (rounds, 4 blocks) each. Without any: both undefined.
  Tensor from, to;

  void add(const Tensor& x, const Tensor& g);
  /// Where the next round begins: g of the last one, or where Anderson's extrapolation of up to three rounds expects the fixed
  /// point, in units of the errors. Changes of more than fifty errors are not extrapolated, and none by more than five times the
  /// last change.
  Tensor next(const Tensor& errors) const;
};

}  // namespace mpol::detail
