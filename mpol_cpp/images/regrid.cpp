#include <mpol_cpp/images/regrid.h>

#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// Part of each new pixel's width that each old one covers, along increasing l or m: (to.npix, from.npix) float64.
/// @param offset  of the old coordinates in the new ones, arcsec
Tensor overlap(const GridCoords& from, const GridCoords& to, double offset) {
  const auto centers = [](const GridCoords& coords) { return coords.l_centers() / units::arcsec; };
  const auto old_center = centers(from).unsqueeze(0) + offset, new_center = centers(to).unsqueeze(1);
  const double old_half = from.cell_size() / 2, new_half = to.cell_size() / 2;
  const auto upper = at::minimum(old_center + old_half, new_center + new_half);
  const auto lower = at::maximum(old_center - old_half, new_center - new_half);
  return (upper - lower).clamp_min(0) / to.cell_size();
}

}  // namespace

Tensor regrid(const Tensor& sky_cube, const GridCoords& from, const GridCoords& to, const SkyOffset& offset) {
  if (sky_cube.dim() < 2 || sky_cube.size(-1) != from.npix() || sky_cube.size(-2) != from.npix()) {
    throw ShapeError(
        fmt::format("the image has shape {}; it must be (…, {}, {})", sky_cube.sizes().vec(), from.npix(), from.npix()));
  }
  if (from == to && offset == SkyOffset()) return sky_cube;
  const auto rows = overlap(from, to, offset.north);
  const auto columns = overlap(from, to, offset.east).flip({0, 1});  // l decreases along a row
  return at::matmul(at::matmul(rows.to(sky_cube.options()), sky_cube), columns.t().to(sky_cube.options()));
}

}  // namespace mpol
