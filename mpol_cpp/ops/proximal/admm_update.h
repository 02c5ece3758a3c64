#pragma once

#include <cstdint>

#include <torch/types.h>

/// What ADMM does to whole arrays between its two minimizations, in one pass on the CPU. Contiguous, float32 or float64; without
/// autograd. Sums are taken in float64 over fixed pieces in a fixed order, whatever the number of threads.
namespace mpol::ops {

using torch::Tensor;

/// Squared lengths.
struct AdmmSums {
  double primal = 0;      ///< a - z' - c
  double change = 0;      ///< z' - z
  double constraint = 0;  ///< a
  double auxiliary = 0;   ///< z'
  double multiplier = 0;  ///< u'
};

/// v = alpha a + (1 - alpha) z + u,  z' = v moved by the threshold towards 0,  u' = v - z'. One problem.
/// @param a  A x
/// @param z  overwritten with z', as u with u'
AdmmSums shrink_update(const Tensor& a, double alpha, double threshold, Tensor& z, Tensor& u);

/// z' and u' = v - z' for a z' that some proximal map made of v. One problem.
/// @param next      z'; it may be v itself
/// @param constant  c, or undefined: 0
/// @param z         overwritten with z', as u with u'
AdmmSums multiplier_update(const Tensor& a, const Tensor& next, const Tensor& constant, const Tensor& v, Tensor& z, Tensor& u);

/// sum x^2.
double squared_length(const Tensor& x);

}  // namespace mpol::ops
