#include <mpol_cpp/coordinates/grid_coords.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ops/arange.h>
#include <ATen/ops/atan2.h>
#include <ATen/ops/hypot.h>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/rounded_down.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// step * (n - npix/2 + offset), n = 0 … count-1, float64.
Tensor axis(double step, std::int64_t npix, std::int64_t count, double offset) {
  const auto n = at::arange(count, torch::kFloat64);
  return (n - 0.5 * static_cast<double>(npix) + offset) * step;
}

Tensor along_rows(const Tensor& values, std::int64_t npix) { return values.unsqueeze(1).expand({npix, npix}).contiguous(); }
Tensor along_columns(const Tensor& values, std::int64_t npix) { return values.unsqueeze(0).expand({npix, npix}).contiguous(); }

}  // namespace

GridCoords::GridCoords(double cell_size, std::int64_t npix) : cell_size_(cell_size), npix_(npix) {
  if (!std::isfinite(cell_size) || cell_size <= 0) {
    throw ValueError(fmt::format("cell_size is {} arcsec; it must be finite and greater than 0", cell_size));
  }
  if (npix <= 0 || npix % 2 != 0) {
    throw ValueError(fmt::format("npix is {}; it must be even and greater than 0{}", npix,
                                 npix <= 1 ? std::string(": use 2 or more") : fmt::format(": use {} or {}", npix - 1, npix + 1)));
  }
}

double GridCoords::dl() const { return cell_size_ * units::arcsec; }
double GridCoords::du() const { return 1.0 / (static_cast<double>(npix_) * dl()); }

Tensor GridCoords::l_centers() const { return axis(dl(), npix_, npix_, 0.0); }
Tensor GridCoords::u_centers() const { return axis(du(), npix_, npix_, 0.0); }
Tensor GridCoords::u_edges() const { return axis(du(), npix_, npix_ + 1, -0.5); }

Tensor GridCoords::packed_u() const { return ground_to_packed(along_columns(u_centers(), npix_)); }
Tensor GridCoords::packed_v() const { return ground_to_packed(along_rows(v_centers(), npix_)); }
Tensor GridCoords::packed_q() const { return at::hypot(packed_u(), packed_v()); }
Tensor GridCoords::packed_phi() const { return at::atan2(packed_v(), packed_u()); }

Tensor GridCoords::sky_x() const { return along_columns(axis(cell_size_, npix_, npix_, 0.0), npix_).flip({1}); }
Tensor GridCoords::sky_y() const { return along_rows(axis(cell_size_, npix_, npix_, 0.0), npix_); }
Tensor GridCoords::packed_x() const { return sky_to_packed(sky_x()); }
Tensor GridCoords::packed_y() const { return sky_to_packed(sky_y()); }

double GridCoords::q_max() const {
  const double corner = du() * 0.5 * static_cast<double>(npix_);
  return std::numbers::sqrt2 * (corner + du());
}

double GridCoords::max_uv() const { return (0.5 * static_cast<double>(npix_) - 0.5) * du(); }

std::array<double, 4> GridCoords::img_ext() const {
  const double half = 0.5 * static_cast<double>(npix_);
  const double upper = cell_size_ * (half - 0.5);
  const double lower = -cell_size_ * (half + 0.5);
  return {upper, lower, lower, upper};
}

std::array<double, 4> GridCoords::vis_ext() const {
  const double half = 0.5 * static_cast<double>(npix_);
  const double upper = du() * (half - 0.5);
  const double lower = -du() * (half + 0.5);
  return {lower, upper, lower, upper};
}

std::int64_t GridCoords::uv_cell(double u) const {
  // A coordinate within rounding of the outer edge belongs to the last cell.
  return std::min(npix_ - 1, static_cast<std::int64_t>(std::floor(u / du() + 0.5 * static_cast<double>(npix_) + 0.5)));
}

bool GridCoords::data_fit(double max_abs_u, double max_abs_v) const {
  // uv_cell rounds: a baseline within rounding of the outer edge would fall beyond the last cell.
  const auto fits = [&](double largest) { return largest < max_uv() && uv_cell(largest) < npix_ && uv_cell(-largest) >= 0; };
  return fits(max_abs_u) && fits(max_abs_v);
}

void GridCoords::check_data_fit(double max_abs_u, double max_abs_v) const {
  if (data_fit(max_abs_u, max_abs_v)) return;
  const double largest = std::max(max_abs_u, max_abs_v);
  throw DataError(fmt::format(
      "baselines reach |{}| = {:.6g} lambda, but cell_size {:.6g}\" with npix {} represents only {:.6g}: use "
      "cell_size < {}\"",
      max_abs_u >= max_abs_v ? "u" : "v", largest, cell_size_, npix_, max_uv(), rounded_down(maximum_cell_size(largest, npix_))));
}

std::map<std::string, std::string> grid_labels(const GridCoords& coords) {
  return {{"cell_size", fmt::format("{}", coords.cell_size())}, {"npix", fmt::format("{}", coords.npix())}};
}

double maximum_cell_size(double max_abs_uv, std::int64_t npix) {
  return (1.0 - 1.0 / static_cast<double>(npix)) / (2.0 * max_abs_uv) / units::arcsec;
}

}  // namespace mpol
