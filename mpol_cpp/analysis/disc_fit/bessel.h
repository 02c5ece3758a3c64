#pragma once

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// The Bessel functions J0 and J1 of each element, to the last digits: at::special_bessel_j0 and j1 miss them by some 1e-7.
/// Computed by the C library on all threads of the host, whatever the device. No autograd.
/// @param x  float64, any shape and device  @return  in its shape, on its device
Tensor bessel_j0(const Tensor& x);
Tensor bessel_j1(const Tensor& x);  ///< as bessel_j0()

}  // namespace mpol
