#include <mpol_cpp/analysis/matching/polar_shapes.h>

#include <algorithm>
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

const double four_ln2 = 4 * std::log(2.0);

void check_bins(const PolarBins& bins) {
  const auto& radii = bins.radii;
  const bool increasing =
      std::adjacent_find(radii.begin(), radii.end(), [](double a, double b) { return !(a < b); }) == radii.end();
  if (radii.size() < 2 || radii.front() < 0 || !increasing || !std::isfinite(radii.back())) {
    throw ValueError("radii of bins for templates: expected at least two edges, from 0 on, increasing");
  }
  if (bins.nphi < 1) throw ValueError(fmt::format("{} bins in azimuth for templates: expected at least one", bins.nphi));
}

void check_positive(double value, const char* what) {
  if (value > 0 && std::isfinite(value)) return;
  throw ValueError(fmt::format("{} of a template {}: must be finite and > 0", what, value));
}

Tensor lower_edges(const PolarBins& bins) {
  return at::tensor(std::vector<double>(bins.radii.begin(), bins.radii.end() - 1), torch::kFloat64).view({-1, 1});
}
Tensor upper_edges(const PolarBins& bins) {
  return at::tensor(std::vector<double>(bins.radii.begin() + 1, bins.radii.end()), torch::kFloat64).view({-1, 1});
}
Tensor middle_radii(const PolarBins& bins) { return (lower_edges(bins) + upper_edges(bins)) / 2; }

}  // namespace

Tensor disc_template(const PolarBins& bins, double radius) {
  check_bins(bins);
  check_positive(radius, "radius");
  const auto inner = lower_edges(bins).square(), outer = upper_edges(bins).square();
  const auto within = ((radius * radius - inner) / (outer - inner)).clamp(0, 1);
  return within.expand({-1, bins.nphi}).contiguous();
}

Tensor ring_template(const PolarBins& bins, double radius, double width) {
  check_bins(bins);
  check_positive(radius, "radius");
  check_positive(width, "width");
  const auto profile = at::exp(-four_ln2 * ((middle_radii(bins) - radius) / width).square());
  return profile.expand({-1, bins.nphi}).contiguous();
}

Tensor arc_template(const PolarBins& bins, double radius, double width, double opening) {
  if (!(opening > 0 && opening <= 2 * units::pi)) {
    throw ValueError(fmt::format("opening of an arc of {} rad: must be above 0, and 2 pi at most", opening));
  }
  const auto ring = ring_template(bins, radius, width);
  // Bins of both halves of the turn, by their distance from azimuth 0.
  const double step = 2 * units::pi / static_cast<double>(bins.nphi);
  const auto edge = at::arange(bins.nphi, torch::kFloat64) * step;
  const auto within = [&](double first, double last) {
    const auto from = edge.clamp_min(first), to = (edge + step).clamp_max(last);
    return ((to - from) / step).clamp_min(0);
  };
  return ring * (within(0, opening / 2) + within(2 * units::pi - opening / 2, 2 * units::pi)).clamp_max(1);
}

Tensor spiral_template(const PolarBins& bins, const SpiralShape& shape) {
  check_bins(bins);
  check_positive(shape.radius, "radius");
  check_positive(shape.width, "width");
  if (!(std::abs(shape.pitch) > 0 && std::abs(shape.pitch) < units::pi / 2)) {
    throw ValueError(fmt::format("pitch of a spiral of {} rad: must lie between -pi/2 and pi/2 and not be 0", shape.pitch));
  }
  if (shape.arms < 1) throw ValueError(fmt::format("a spiral of {} arms: must have at least one", shape.arms));
  const double between = 2 * units::pi / static_cast<double>(shape.arms);
  const auto r = middle_radii(bins);
  const auto azimuth = (at::arange(bins.nphi, torch::kFloat64) + 0.5) * (2 * units::pi / static_cast<double>(bins.nphi));
  const auto from_first = azimuth - at::log(r / shape.radius) / std::tan(shape.pitch);
  const auto from_nearest = (from_first + between / 2).remainder(between) - between / 2;
  const auto distance = r * from_nearest * std::sin(shape.pitch);
  return at::exp(-four_ln2 * (distance / shape.width).square());
}

}  // namespace mpol
