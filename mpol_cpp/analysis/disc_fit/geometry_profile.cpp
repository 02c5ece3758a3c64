#include <mpol_cpp/analysis/disc_fit/geometry_profile.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ops/complex.h>
#include <ATen/ops/real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/analysis/disc_fit/disc_plane.h>
#include <mpol_cpp/analysis/disc_fit/sample_sums.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

struct Longest {
  double length = 0;
  Longest& operator+=(const Longest& other) {
    length = std::max(length, other.length);
    return *this;
  }
};

/// The weighted mean of all channels.
VisibilityProfile one_channel(const VisibilityProfile& profile) {
  const auto error = at::real(profile.error);
  const auto weight = at::where(error > 0, 1 / error.square(), at::zeros_like(error));
  const auto total = weight.sum(0, true), filled = total > 0;
  const auto safe = at::where(filled, total, 1.0);
  VisibilityProfile merged{.q = profile.q, .mean = {}, .error = {}, .samples = profile.samples.sum(0, true)};
  merged.mean = (profile.mean * weight).sum(0, true) / safe;
  const auto merged_error = at::where(filled, 1 / safe.sqrt(), at::zeros_like(safe));
  merged.error = at::complex(merged_error, merged_error);
  return merged;
}

constexpr std::size_t lengths = 16, directions = 12;

/// Sums of residuals in cells.
struct CellSums {
  std::vector<double> weight = std::vector<double>(lengths * directions);
  std::vector<double> real = weight, imag = weight;

  CellSums& operator+=(const CellSums& other) {
    for (std::size_t i = 0; i < weight.size(); ++i) {
      weight[i] += other.weight[i];
      real[i] += other.real[i];
      imag[i] += other.imag[i];
    }
    return *this;
  }
};

/// The cell of a place; that of -u, -v is the same one.
std::size_t cell_of(const DiscPlane::Place& at, double longest) {
  const double angle = std::atan2(at.major, at.minor), half_turn = angle < 0 ? angle + units::pi : angle;
  const auto length = std::min(lengths - 1, static_cast<std::size_t>(at.length() / longest * lengths));
  const auto direction = std::min(directions - 1, static_cast<std::size_t>(half_turn / units::pi * directions));
  return length * directions + direction;
}

}  // namespace

double longest_deprojected(const Visibilities& visibilities, const DiscGeometry& geometry) {
  const DiscPlane plane(geometry);
  return sum_over_samples(visibilities, Longest{},
                          [&](Longest& longest, const Sample& sample) {
                            longest.length = std::max(longest.length, plane.at(sample.u, sample.v).length());
                          })
      .length;
}

VisibilityProfile deprojected_profile(const Visibilities& visibilities, const DiscGeometry& geometry, std::int64_t bins) {
  if (bins < 1) throw ValueError(fmt::format("there are {} bins; there must be at least 1", bins));
  const double longest = longest_deprojected(visibilities, geometry) * (1 + 1e-9);
  std::vector<double> edges;
  for (std::int64_t i = 0; i <= bins; ++i) edges.push_back(longest * static_cast<double>(i) / static_cast<double>(bins));
  return one_channel(radial_v(visibilities, geometry, RadialVisibilityOptions().edges(edges)));
}

GeometryProfile geometry_profile(const Visibilities& visibilities, const GeometryFit& fit, std::int64_t bins) {
  GeometryProfile profile{deprojected_profile(visibilities, {}, bins), deprojected_profile(visibilities, fit.geometry, bins), {}};
  profile.model = fit.model_at(profile.after.q);
  return profile;
}

double residual_structure(const Visibilities& visibilities, const GeometryFit& fit) {
  const double longest = longest_deprojected(visibilities, fit.geometry);
  const DiscPlane plane(fit.geometry);
  const auto sums = sum_over_samples(visibilities, CellSums(), [&](CellSums& own, const Sample& sample) {
    const CenteredVisibility centered(sample, fit.geometry.offset_east, fit.geometry.offset_north);
    const auto at = plane.at(sample.u, sample.v);
    const double conjugation = at.major < 0 ? -1 : 1;
    const auto cell = cell_of(at, longest);
    own.weight[cell] += sample.weight;
    own.real[cell] += sample.weight * (centered.real - fit.model_at(at.length()));
    own.imag[cell] += sample.weight * conjugation * centered.imag;
  });
  double chi_squared = 0, means = 0;
  for (std::size_t i = 0; i < sums.weight.size(); ++i) {
    if (!(sums.weight[i] > 0)) continue;
    chi_squared += (sums.real[i] * sums.real[i] + sums.imag[i] * sums.imag[i]) / sums.weight[i];
    means += 2;
  }
  // A profile of one's own takes away at most one mean for each length; the geometry four.
  const double fitted = static_cast<double>(std::min<std::int64_t>(fit.parameters, lengths + 4));
  return chi_squared / std::max(1.0, means - fitted);
}

}  // namespace mpol
