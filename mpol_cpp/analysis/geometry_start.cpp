#include <mpol_cpp/analysis/geometry_start.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>

#include <mpol_cpp/analysis/field_choice.h>
#include <mpol_cpp/analysis/geometry_equations.h>
#include <mpol_cpp/analysis/wide_image.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol {
namespace {

using Vector = NormalEquations::Vector;
namespace place = geometry_parameter;

constexpr int start_iterations = 40;
constexpr std::size_t starts_followed = 4;

/// A place to begin, and the chi^2 there.
struct Start {
  Vector at{};
  double chi_squared = 0;
};

/// The best few, in their order.
std::vector<Start> best_of(std::vector<Start> starts) {
  std::stable_sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) { return a.chi_squared < b.chi_squared; });
  starts.resize(std::min(starts.size(), starts_followed));
  return starts;
}

/// Tilts all around: face on, and some inclinations at eight position angles.
std::vector<Tilt> tilts() {
  std::vector<Tilt> all = {{}};
  for (const double eta : {0.15, 0.5, 1.2}) {
    for (int i = 0; i < 8; ++i) all.push_back({eta * std::cos(units::pi * i / 4), eta * std::sin(units::pi * i / 4)});
  }
  return all;
}

/// An even choice of the samples of every channel.
Visibilities samples_for_start(const Visibilities& visibilities) {
  constexpr std::int64_t most = 1 << 14, least_of_channel = 1024;
  const auto nvis = visibilities.nvis(), wanted = std::max(least_of_channel, most / visibilities.nchan());
  if (nvis <= wanted) return visibilities;
  return visibilities.select((at::arange(wanted, torch::kInt64) * nvis).div(wanted, "floor"));
}

FluxSquare flux_in_image(const Visibilities& visibilities, const UvSummary& uv) {
  constexpr std::int64_t pixels = 256;
  const double width = choose_field(visibilities, uv).width;
  return square_of_flux(wide_map(GridCoords(width / pixels, pixels), visibilities));
}

LeastSquaresFit best_descent(const std::vector<Start>& starts, const std::function<NormalEquations(const Vector&)>& evaluate) {
  LeastSquaresFit best;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    auto fit = least_squares(evaluate, starts[i].at, start_iterations);
    if (i == 0 || fit.equations.chi_squared < best.equations.chi_squared) best = fit;
  }
  return best;
}

/// The start with the flux that suits it best; chi^2 is a parabola of the flux.
Start with_flux(const Visibilities& visibilities, DiscShape shape, Vector at) {
  at[place::flux] = 1;
  const auto equations = shape_equations(visibilities, shape, at);
  const double curvature = equations.matrix[place::flux][place::flux], slope = equations.gradient[place::flux];
  const double change = curvature > 0 ? slope / curvature : -1;
  at[place::flux] += change;
  return {at, equations.chi_squared - change * slope};
}

}  // namespace

LeastSquaresFit fit_shape_from_anywhere(const Visibilities& visibilities, DiscShape shape, int most_iterations) {
  constexpr double least_gain = 25;
  const auto uv = summarise_uv(visibilities.baselines());
  if (!(uv.longest > 0)) throw DataError("all baselines have length zero; the geometry of a disc needs longer ones");
  const auto square = flux_in_image(visibilities, uv);
  const double finest = 0.2 / (uv.longest * units::arcsec);
  const double widest = 2 * std::max(square.half_width, 2 * finest);
  const auto few = samples_for_start(visibilities);
  std::vector<Start> starts;
  for (double size = widest; size > finest; size /= 1.6) {
    for (const auto& tilt : tilts()) {
      starts.push_back(with_flux(few, shape, {tilt.along, tilt.across, square.east, square.north, 1, size, size / 3}));
    }
  }
  Vector nothing{};
  const double without = shape_equations(visibilities, shape, nothing).chi_squared;
  const auto start = best_descent(best_of(std::move(starts)), [&](const Vector& at) { return shape_equations(few, shape, at); });
  const auto fit =
      least_squares([&](const Vector& at) { return shape_equations(visibilities, shape, at); }, start.at, most_iterations);
  if (!(without - fit.equations.chi_squared > least_gain)) {
    throw DataError(fmt::format(
        "no source is found: a {} makes chi^2 smaller by {:.3g} only; it must be more than {}: use more data",
        shape == DiscShape::gaussian ? "Gaussian" : "model", std::max(0.0, without - fit.equations.chi_squared), least_gain));
  }
  return fit;
}

ProfileKnots choose_knots(const Visibilities& visibilities, double fwhm, std::int64_t knots) {
  constexpr double per_fringe = 8, least = 6, most = 400;
  const double longest = summarise_uv(visibilities.baselines()).longest;
  const double samples = static_cast<double>(visibilities.nvis() * visibilities.nchan());
  const double wanted =
      knots > 0 ? static_cast<double>(knots)
                : std::clamp(per_fringe * longest * fwhm * units::arcsec, least, std::min(most, std::max(least, samples / 10)));
  return {longest / wanted, static_cast<std::int64_t>(wanted) + 2};
}

ProfileKnots cut_to_signal(const Visibilities& visibilities, const Vector& at, ProfileKnots knots) {
  constexpr double significant = 4;
  constexpr std::int64_t least = 4;
  const auto profile = fit_profile(visibilities, at, knots.spacing, knots.count);
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < knots.count; ++i) {
    std::vector<double> unit(static_cast<std::size_t>(knots.count));
    const auto k = static_cast<std::size_t>(i);
    unit[k] = 1;
    const double sigma = std::sqrt(profile.factor.solve(unit)[k]);
    if (std::abs(profile.spline.coefficients[k]) > significant * sigma) last = i;
  }
  knots.count = std::min(knots.count, std::max(least, last + 2));
  return knots;
}

LeastSquaresFit fit_profile_from_anywhere(const Visibilities& visibilities, const Vector& gaussian, const ProfileKnots& knots,
                                          int most_iterations) {
  const auto few = samples_for_start(visibilities);
  const auto chi_squared = [&](const Vector& at) { return fit_profile(few, at, knots.spacing, knots.count).chi_squared; };
  std::vector<Start> starts = {{gaussian, chi_squared(gaussian)}};
  for (const auto& tilt : tilts()) {
    auto at = gaussian;
    at[place::along] = tilt.along;
    at[place::across] = tilt.across;
    starts.push_back({at, chi_squared(at)});
  }
  const auto start = best_descent(best_of(std::move(starts)),
                                  [&](const Vector& at) { return profile_equations(few, at, knots.spacing, knots.count); });
  return least_squares([&](const Vector& at) { return profile_equations(visibilities, at, knots.spacing, knots.count); },
                       start.at, most_iterations);
}

}  // namespace mpol
