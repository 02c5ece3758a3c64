#include <mpol_cpp/analysis/deproject.h>

#include <array>
#include <cmath>

#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr double edge_on_disc = 1e-8;  // cos i

/// Weights of the pixels floor(x) - 1, …, floor(x) + 2 in the value between them, as a function of t = x - floor(x).
std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  const auto t2 = t * t, t3 = t2 * t;
  return {t2 - 0.5 * (t + t3), 1 - 2.5 * t2 + 1.5 * t3, 0.5 * t + 2 * t2 - 1.5 * t3, 0.5 * (t3 - t2)};
}

/// Pixel numbers floor(x) + shift kept within the image, with their weights set to zero outside it.
struct Taps {
  Tensor pixels;   // int64
  Tensor weights;  // float64
};

std::array<Taps, 4> taps_at(const Tensor& position, std::int64_t npix) {
  const auto base = position.floor();
  const auto weights = cubic_weights(position - base);
  std::array<Taps, 4> taps;
  for (std::size_t i = 0; i < taps.size(); ++i) {
    const auto pixel = base + (static_cast<double>(i) - 1);
    const auto inside = (pixel >= 0).logical_and(pixel < static_cast<double>(npix));
    taps[i] = {pixel.clamp(0, static_cast<double>(npix - 1)).to(torch::kInt64), weights[i] * inside};
  }
  return taps;
}

/// The image (nchan, npix, npix) between pixels, at rows and columns (npix, npix).
Tensor interpolate(const Tensor& sky_cube, const Tensor& row, const Tensor& column) {
  const auto npix = sky_cube.size(-1);
  const auto rows = taps_at(row, npix), columns = taps_at(column, npix);
  const auto pixels = sky_cube.flatten(-2);
  auto sum = at::zeros_like(sky_cube);
  for (const auto& r : rows) {
    for (const auto& c : columns) {
      const auto index = (r.pixels * npix + c.pixels).flatten().to(sky_cube.device());
      sum = sum + pixels.index_select(-1, index).view(sky_cube.sizes()) * (r.weights * c.weights).to(sky_cube.options());
    }
  }
  return sum;
}

}  // namespace

Tensor deproject(const Tensor& sky_cube, const GridCoords& coords, const DiscGeometry& geometry) {
  const auto npix = coords.npix();
  if (sky_cube.dim() != 3 || sky_cube.size(-1) != npix || sky_cube.size(-2) != npix) {
    throw ShapeError(fmt::format("the image has shape {}; it must be (nchan, {}, {})", sky_cube.sizes().vec(), npix, npix));
  }
  const double foreshortening = std::cos(geometry.inclination);
  if (!(std::abs(foreshortening) >= edge_on_disc)) {
    throw ValueError(fmt::format("the inclination is {} degrees; a disc seen edge on has no deprojection: it must differ from 90",
                                 geometry.inclination / units::degree));
  }
  const double c = std::cos(geometry.position_angle), s = std::sin(geometry.position_angle);
  const auto minor = coords.sky_x() * foreshortening, major = coords.sky_y();
  const auto east = minor * c + major * s + geometry.offset_east, north = major * c - minor * s + geometry.offset_north;
  const double half = 0.5 * static_cast<double>(npix);
  const auto column = half - 1.0 - east / coords.cell_size(), row = half + north / coords.cell_size();
  return interpolate(sky_cube, row, column);
}

}  // namespace mpol
