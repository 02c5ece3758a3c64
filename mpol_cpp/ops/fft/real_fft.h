#pragma once

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// Unnormalised real FFT over the last two dimensions, (…, npix, npix) real -> (…, npix, npix/2 + 1) complex.
/// Its gradient is `half_plane_adjoint`, one real transform, where autograd's own runs a full complex one.
/// Differentiable to any order.
Tensor half_plane_fft(const Tensor& image);

/// The exact adjoint of half_plane_fft: for every x and g, Re <half_plane_fft(x), g> = <x, half_plane_adjoint(g)>.
/// (…, npix, npix/2 + 1) complex -> (…, npix, npix) real. Not the inverse transform: interior columns of the half
/// plane stand for two of the full one, columns 0 and npix/2 for one.
Tensor half_plane_adjoint(const Tensor& half_plane);

/// Unnormalised FFT of a real image over the full plane, (…, npix, npix) real -> (…, npix, npix) complex, with a
/// gradient that is one real transform. Differentiable to any order.
Tensor full_plane_fft(const Tensor& image);

/// The exact adjoint of full_plane_fft, (…, npix, npix) complex -> (…, npix, npix) real.
Tensor full_plane_adjoint(const Tensor& plane);

}  // namespace mpol::ops
