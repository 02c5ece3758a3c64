#include <mpol_cpp/analysis/radial_fit/radial_profile_fit.h>

#include <algorithm>
#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/randn.h>

#include <mpol_cpp/analysis/disc_fit/geometry_profile.h>
#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/analysis/radial_fit/few_threads.h>
#include <mpol_cpp/analysis/radial_fit/profile_posterior.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol {
namespace {

void check_options(const RadialProfileOptions& options) {
  const auto& prior = options.prior();
  const auto refuse = [](const char* name, double value, const char* limit) {
    throw ValueError(fmt::format("{} is {}; it must be {}", name, value, limit));
  };
  const auto finite_at_least = [](double value, double least) { return value >= least && std::isfinite(value); };
  if (!finite_at_least(options.radius(), 0))
    refuse("the radius of the profile", options.radius(), "finite and > 0, or 0: chosen");
  if (options.points() < 0 || options.points() == 1 || options.points() == 2)
    refuse("the number of radii", static_cast<double>(options.points()), "at least 3, or 0: chosen");
  if (!finite_at_least(prior.alpha, 1)) refuse("alpha", prior.alpha, "finite and at least 1");
  if (!finite_at_least(prior.smoothness, 0)) refuse("the smoothness", prior.smoothness, "finite and at least 0");
  if (!(prior.least_power > 0) || std::isinf(prior.least_power)) refuse("least_power", prior.least_power, "finite and > 0");
  if (options.most_iterations() < 1) refuse("most_iterations", options.most_iterations(), "at least 1");
  if (!(options.tolerance() > 0)) refuse("the tolerance", options.tolerance(), "> 0");
}

/// A power law to begin with: as high as the data are at their strongest, falling as q^-2.
Tensor first_power(const FourierBesselSeries& series, const ProfilePosterior& posterior, const RadialSums& sums) {
  const auto& q = series.frequencies();
  const auto shape = (q[0] / q).square();
  const double mean = std::max(sums.data_squares() / sums.weight(), 1e-300);
  const auto rough = posterior.at(shape * mean).mean.square().max();
  return shape * rough.clamp_min(mean);
}

struct PowerFit {
  Tensor power;
  ProfilePosterior::Spectrum spectrum;
  int iterations = 0;
  bool converged = false;
};

PowerFit fit_power(const FourierBesselSeries& series, const ProfilePosterior& posterior, const RadialSums& sums,
                   const RadialProfileOptions& options) {
  const auto& prior = options.prior();
  const auto count = series.count();
  const auto factor =
      at::linalg_cholesky(smoothness_matrix(series.frequencies(), prior.smoothness) + at::eye(count, torch::kFloat64));
  PowerFit fit;
  const double most = posterior.most_power();
  fit.power = first_power(series, posterior, sums).clamp_max(most);
  while (!fit.converged && fit.iterations < options.most_iterations()) {
    const auto spectrum = posterior.at(fit.power);
    const auto next =
        next_power(fit.power, spectrum.mean.square() + spectrum.covariance.diagonal(), factor, prior).clamp_max(most);
    fit.converged = ((next - fit.power).abs() <= options.tolerance() * next).all().item<bool>();
    fit.power = next;
    ++fit.iterations;
  }
  fit.spectrum = posterior.at(fit.power);
  return fit;
}

void add_warnings(RadialProfileFit& fit, const RadialProfileOptions& options) {
  constexpr double outer_part = 0.95, significant = 4;
  constexpr double least_reduced = 0.75, most_reduced = 1.33;
  const auto say = [&fit](const std::string& text) { fit.warnings.push_back(text); };
  if (!fit.converged) {
    say(fmt::format("the power spectrum of the profile has not converged in {} iterations: allow more, or raise the tolerance",
                    options.most_iterations()));
  }
  const auto reach = fit.series.frequencies()[-1].item<double>();
  if (reach < fit.longest) {
    say(fmt::format(
        "{} radii within {:.4g}\" reach {:.4g} of the {:.4g} wavelengths of the longest deprojected baseline: take {} "
        "or more",
        fit.series.count(), fit.series.radius(), reach, fit.longest,
        static_cast<std::int64_t>(std::ceil(static_cast<double>(fit.series.count()) * fit.longest / reach)) + 1));
  }
  if (const double reduced = fit.reduced_chi_squared(); reduced < least_reduced || reduced > most_reduced) {
    say(fmt::format(
        "chi^2 is {:.3g} for each real number: the weights, the geometry or the symmetry is wrong, and so are the errors "
        "(mpol weights tells the weights')",
        reduced));
  }
  const auto is_outer = fit.series.radii() > outer_part * fit.series.radius();
  const auto weights = fit.series.areas() * is_outer;
  const double flux = weights.dot(fit.brightness).item<double>();
  const double error = std::sqrt(std::max(0.0, weights.dot(fit.covariance.mv(weights)).item<double>()));
  if (std::abs(flux) > significant * error && std::abs(flux) > 1e-2 * std::abs(fit.flux)) {
    say(fmt::format("there is flux at the edge of the profile, {:.3g} of the total beyond {:.4g}\": take a larger radius",
                    flux / fit.flux, outer_part * fit.series.radius()));
  }
  for (const auto& warning : fit.warnings) log_warning(warning);
}

std::int64_t points_for(double radius, double longest) {
  constexpr double beyond = 1.2;
  constexpr std::int64_t least = 50, most = 1000;
  const double needed = 2 * radius * units::arcsec * longest * beyond;
  return std::clamp(static_cast<std::int64_t>(std::min(std::ceil(needed), 1e9)), least, most);
}

double radius_for(const Visibilities& visibilities) {
  return choose_field(visibilities, summarize_uv(visibilities.baselines())).width / 2;
}

}  // namespace

Tensor RadialProfileFit::error() const { return covariance.diagonal().clamp_min(0).sqrt(); }

double RadialProfileFit::reduced_chi_squared() const { return chi_squared / (2 * static_cast<double>(samples)); }

Tensor RadialProfileFit::visibilities_at(const Tensor& q) const {
  return series.transform(q).mv(brightness) * std::cos(geometry.inclination);
}

Tensor RadialProfileFit::samples_of(std::int64_t count, std::uint64_t seed) const {
  if (count < 1) throw ValueError(fmt::format("{} samples of a profile; there must be at least 1", count));
  const FewThreads few(series.count());
  const auto [values, vectors] = at::linalg_eigh(covariance);
  const auto deviates =
      at::randn({count, series.count()}, at::detail::createCPUGenerator(seed), at::TensorOptions(torch::kFloat64));
  return brightness + (deviates * values.clamp_min(0).sqrt()).matmul(vectors.mT());
}

RadialProfileFit fit_radial_profile(const FourierBesselSeries& series, const DiscGeometry& geometry, const RadialSums& sums,
                                    const RadialProfileOptions& options) {
  check_options(options);
  if (sums.samples() < 1) throw DataError("there are no visibilities; a profile needs at least one: add them to the sums");
  const auto matrix = sums.matrix(), vector = sums.vector();
  const FewThreads few(series.count());
  const ProfilePosterior posterior(series, matrix, vector);
  const auto power = fit_power(series, posterior, sums, options);
  const auto brightness = posterior.inverse().mv(power.spectrum.mean);
  const auto covariance = posterior.inverse().matmul(power.spectrum.covariance).matmul(posterior.inverse().mT());
  const double shape = std::abs(std::cos(geometry.inclination));
  RadialProfileFit fit{
      .series = series, .geometry = geometry, .brightness = brightness, .covariance = covariance, .power = power.power};
  fit.flux = shape * series.areas().dot(brightness).item<double>();
  fit.flux_error = shape * std::sqrt(std::max(0.0, series.areas().dot(covariance.mv(series.areas())).item<double>()));
  fit.chi_squared = sums.data_squares() + brightness.dot(matrix.mv(brightness) - 2 * vector).item<double>();
  fit.longest = sums.longest();
  fit.samples = sums.samples();
  fit.iterations = power.iterations;
  fit.converged = power.converged;
  add_warnings(fit, options);
  return fit;
}

RadialProfileFit fit_radial_profile(const Visibilities& visibilities, const DiscGeometry& geometry,
                                    const RadialProfileOptions& options) {
  check_options(options);
  const double longest = longest_deprojected(visibilities, geometry);
  if (!(longest > 0)) throw DataError("no baseline has a length; a profile needs some: use other data");
  const double radius = options.radius() > 0 ? options.radius() : radius_for(visibilities);
  const FourierBesselSeries series(radius, options.points() > 0 ? options.points() : points_for(radius, longest));
  RadialSums sums(series, geometry, longest);
  sums.add(visibilities);
  return fit_radial_profile(series, geometry, sums, options);
}

}  // namespace mpol
