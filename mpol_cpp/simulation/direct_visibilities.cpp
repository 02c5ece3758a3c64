#include <mpol_cpp/simulation/direct_visibilities.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sinc.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// Visibilities of samples (u, v) of one image whose rows are m and columns l, both increasing: (n) complex128, Jy.
Tensor block_visibilities(const Tensor& flux, const Tensor& centers, const Tensor& u, const Tensor& v) {
  const auto phase_l = at::outer(u, centers) * (-2 * units::pi);  // (n, npix)
  const auto phase_m = at::outer(v, centers) * (-2 * units::pi);
  const auto cos_l = at::cos(phase_l), sin_l = at::sin(phase_l);
  const auto rows = at::matmul(at::cat({at::cos(phase_m), at::sin(phase_m)}), flux);  // (2n, npix): sums over m
  const auto n = u.size(0);
  const auto real = rows.narrow(0, 0, n), imaginary = rows.narrow(0, n, n);
  return at::complex((real * cos_l - imaginary * sin_l).sum(1), (real * sin_l + imaginary * cos_l).sum(1));
}

void check_shapes(const Tensor& sky_cube, const GridCoords& coords, const Baselines& baselines, std::int64_t nchan) {
  const auto npix = coords.npix();
  if (sky_cube.dim() != 3 || sky_cube.size(1) != npix || sky_cube.size(2) != npix)
    throw ShapeError(fmt::format("image of shape ({}): expected (nchan, {}, {})", fmt::join(sky_cube.sizes(), ", "), npix, npix));
  if (sky_cube.size(0) != 1 && sky_cube.size(0) != nchan)
    throw ShapeError(
        fmt::format("image of {} channels for {} channels of visibilities: give 1 or {}", sky_cube.size(0), nchan, nchan));
  if (!baselines.shared() && baselines.nchan() != nchan)
    throw ShapeError(fmt::format("baselines of {} channels for {} channels of visibilities", baselines.nchan(), nchan));
}

}  // namespace

Tensor direct_visibilities(const Tensor& sky_cube, const GridCoords& coords, const Baselines& baselines, std::int64_t nchan,
                           PixelShape shape) {
  check_shapes(sky_cube, coords, baselines, nchan);
  const auto flux = (sky_cube.to(torch::kCPU, torch::kFloat64).flip(-1) * coords.cell_area()).contiguous();
  const auto centers = coords.l_centers();
  const auto nvis = baselines.nvis();
  // About eight arrays of (block, npix) doubles live at once.
  const auto block = std::clamp<std::int64_t>((std::int64_t{1} << 20) / coords.npix(), 16, 4096);

  auto visibilities = at::empty({nchan, nvis}, torch::kComplexDouble);
  for (std::int64_t channel = 0; channel < nchan; ++channel) {
    const auto image = flux[flux.size(0) == 1 ? 0 : channel];
    for (std::int64_t begin = 0; begin < nvis; begin += block) {
      const auto end = std::min(begin + block, nvis);
      const auto [u, v] = baselines.block(channel, begin, end);
      auto values = block_visibilities(image, centers, u, v);
      if (shape == PixelShape::square) values = values * (at::sinc(u * coords.dl()) * at::sinc(v * coords.dm()));
      visibilities[channel].narrow(0, begin, end - begin).copy_(values);
    }
  }
  return visibilities;
}

}  // namespace mpol
