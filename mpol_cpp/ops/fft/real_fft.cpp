#include <mpol_cpp/ops/fft/real_fft.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <torch/autograd.h>

namespace mpol::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Value at row -k of every row k, over the second last dimension.
Tensor mirror_rows(const Tensor& plane) { return plane.flip({-2}).roll(1, -2); }

/// Unnormalised inverse transform of a Hermitian half plane to a real image.
Tensor inverse_real(const Tensor& half_plane) {
  const auto npix = half_plane.size(-2);
  return at::fft_irfft2(half_plane, at::IntArrayRef({npix, npix}), {-2, -1}, "forward");
}

struct HalfPlane : torch::autograd::Function<HalfPlane> {
  static Tensor forward(AutogradContext*, const Tensor& image) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return at::fft_rfft2(image);
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) { return {half_plane_adjoint(gradients[0])}; }
};

struct FullPlane : torch::autograd::Function<FullPlane> {
  static Tensor forward(AutogradContext*, const Tensor& image) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return at::fft_fft2(image);
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) { return {full_plane_adjoint(gradients[0])}; }
};

}  // namespace

Tensor half_plane_fft(const Tensor& image) { return HalfPlane::apply(image); }

Tensor half_plane_adjoint(const Tensor& half_plane) {
  const auto half = half_plane.size(-1) - 1;
  const auto hermitian = [](const Tensor& column) { return (column + mirror_rows(column).conj()) * 0.5; };
  if (half == 1) return inverse_real(hermitian(half_plane));
  return inverse_real(at::cat({hermitian(half_plane.narrow(-1, 0, 1)), half_plane.narrow(-1, 1, half - 1) * 0.5,
                               hermitian(half_plane.narrow(-1, half, 1))},
                              -1));
}

Tensor full_plane_fft(const Tensor& image) { return FullPlane::apply(image); }

/// Re sum_k g_k e^{+ikn} is the real inverse transform of the Hermitian part of g.
Tensor full_plane_adjoint(const Tensor& plane) {
  const auto half = plane.size(-1) / 2;
  const auto mirrored = mirror_rows(at::cat({plane.narrow(-1, 0, 1), plane.narrow(-1, half, half).flip({-1})}, -1));
  return inverse_real((plane.narrow(-1, 0, half + 1) + mirrored.conj()) * 0.5);
}

}  // namespace mpol::ops
