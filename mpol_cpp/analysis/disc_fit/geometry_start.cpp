#include <mpol_cpp/analysis/disc_fit/geometry_start.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/analysis/disc_fit/geometry_equations.h>
#include <mpol_cpp/analysis/field/wide_image.h>
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

/// Tilts all around: face on, and two inclinations at six position angles.
std::vector<Tilt> tilts() {
  std::vector<Tilt> all = {{}};
  for (const double eta : {0.25, 1.0}) {
    for (int i = 0; i < 6; ++i) all.push_back({eta * std::cos(units::pi * i / 3), eta * std::sin(units::pi * i / 3)});
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

/// Where there is flux; where nothing stands out from noise and sidelobes, the brightest place, of no width.
FluxSquare flux_in_image(const Visibilities& visibilities, const UvSummary& uv) {
  constexpr std::int64_t pixels = 256;
  const double width = choose_field(visibilities, uv).width;
  const auto map = wide_map(GridCoords(width / pixels, pixels), visibilities);
  const auto square = square_of_flux(map);
  if (square.half_width > 0) return square;
  const auto peak = peak_outside(map, 0);
  return {peak.east, peak.north, 0};
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

/// One over the mean square of the coefficients around each, less that of their noise.
std::vector<double> expected_precisions(const FittedProfile& profile) {
  constexpr std::size_t around = 2;
  constexpr double least_power = 0.05;  // of the noise, where there is no more than that
  const auto& coefficients = profile.spline.coefficients;
  std::vector<double> variances, precisions;
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    std::vector<double> unit(coefficients.size());
    unit[k] = 1;
    variances.push_back(profile.factor.solve(unit)[k]);
  }
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    double squares = 0, noise = 0, weights = 0;
    for (auto i = k - std::min(k, around); i < std::min(k + around + 1, coefficients.size()); ++i) {
      squares += coefficients[i] * coefficients[i] / variances[i];
      noise += 1;
      weights += 1 / variances[i];
    }
    precisions.push_back(weights / std::max(least_power * noise, squares - noise));
  }
  return precisions;
}

}  // namespace

ShapeStart fit_shape_from_anywhere(const Visibilities& visibilities, DiscShape shape, int most_iterations) {
  constexpr double least_gain = 25;
  const auto uv = summarize_uv(visibilities.baselines());
  if (!(uv.longest > 0)) throw DataError("all baselines have length zero; the geometry of a disc needs longer ones");
  const auto square = flux_in_image(visibilities, uv);
  const double finest = 0.2 / (uv.longest * units::arcsec);
  const double widest = std::max({2 * square.half_width, 0.5 / (uv.short_end * units::arcsec), 4 * finest});
  const auto few = samples_for_start(visibilities);
  std::vector<Start> starts;
  constexpr double ladder = 1.6;  // of neighbouring sizes
  const int sizes = 1 + static_cast<int>(std::log(widest / finest) / std::log(ladder));
  for (int i = 0; i < sizes; ++i) {
    const double size = widest * std::pow(ladder, -i);
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
  return {fit, square.half_width};
}

double chi_squared_of_point(const Visibilities& visibilities, const Vector& at) {
  return with_flux(visibilities, DiscShape::point, {0, 0, at[place::east], at[place::north], 1}).chi_squared;
}

ProfileKnots choose_knots(const Visibilities& visibilities, const Vector& at, double reach) {
  constexpr double most = 400, price = 2;
  constexpr std::size_t least = 4;
  const double longest = summarize_uv(visibilities.baselines()).longest;
  const double ceiling = std::min(most, static_cast<double>(visibilities.nvis() * visibilities.nchan()) / 5);
  ProfileKnots best;
  double lowest = std::numeric_limits<double>::infinity();
  for (const double per_fringe : {4.0, 6.0, 8.0}) {
    const double wanted = std::clamp(per_fringe * longest * reach * units::arcsec, static_cast<double>(least), ceiling);
    const ProfileKnots all{longest / wanted, std::vector<double>(static_cast<std::size_t>(wanted) + 3)};
    const auto profile = fit_profile(visibilities, at, all);
    double criterion = profile.chi_squared;
    for (const double gain : profile.gains) criterion += gain;
    for (std::size_t i = 0; i < profile.gains.size(); ++i) {
      criterion += price - profile.gains[i];
      if (i + 1 < least || !(criterion < lowest)) continue;
      lowest = criterion;
      best = {all.spacing, std::vector<double>(i + 1)};
    }
  }
  best.precisions = expected_precisions(fit_profile(visibilities, at, best));
  return best;
}

LeastSquaresFit fit_profile_from_anywhere(const Visibilities& visibilities, const Vector& gaussian, const ProfileKnots& knots) {
  const auto few = samples_for_start(visibilities);
  const auto chi_squared = [&](const Vector& at) { return fit_profile(few, at, knots).chi_squared; };
  std::vector<Start> starts = {{gaussian, chi_squared(gaussian)}};
  for (const auto& tilt : tilts()) {
    auto at = gaussian;
    at[place::along] = tilt.along;
    at[place::across] = tilt.across;
    starts.push_back({at, chi_squared(at)});
  }
  return best_descent(best_of(std::move(starts)), [&](const Vector& at) { return profile_equations(few, at, knots); });
}

}  // namespace mpol
