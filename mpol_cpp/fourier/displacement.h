#pragma once

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// exp(-2 pi i (u l + v m)): by what visibilities of a sky are multiplied when it is displaced by (l, m). Differentiable with
/// respect to the shift: together with Nufft, and with factors of visibilities, it makes positions and gains parameters of a fit.
/// @param u, v   wavelengths, of one shape, float64
/// @param shift  (2): l to the East and m to the North, arcsec, float32 or float64
/// @return       complex128, in the shape of u and v
/// @throws ShapeError
Tensor displacement_phase(const Tensor& u, const Tensor& v, const Tensor& shift);

}  // namespace mpol
