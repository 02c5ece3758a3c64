#include <mpol_cpp/analysis/disc_fit/geometry_fit.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/empty.h>

#include <mpol_cpp/analysis/disc_fit/geometry_equations.h>
#include <mpol_cpp/analysis/disc_fit/geometry_profile.h>
#include <mpol_cpp/analysis/disc_fit/geometry_start.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

namespace place = geometry_parameter;
using Matrix = NormalEquations::Matrix;

constexpr double significant_sigma = 3;
// A source's reach, in widths of the Gaussian that fits; what is seen farther out is another one.
constexpr double nearest_reach = 1.3, farthest_reach = 4;

DiscShape shape_of(GeometryModel model) {
  if (model == GeometryModel::ring) return DiscShape::broad_ring;
  return model == GeometryModel::disc ? DiscShape::disc : DiscShape::gaussian;
}

void check_fit(const Visibilities& visibilities, const GeometryFitOptions& options) {
  constexpr std::int64_t least_samples = 20;
  const auto samples = visibilities.nvis() * visibilities.nchan();
  if (samples < least_samples) {
    throw DataError(fmt::format("there are {} visibilities; the geometry of a disc needs at least {}: use more data", samples,
                                least_samples));
  }
  if (options.most_iterations() < 1) {
    throw ValueError(fmt::format("most_iterations is {}; it must be at least 1", options.most_iterations()));
  }
}

/// Errors of (along, across) turned into one along the tilt and one across it.
struct TiltErrors {
  double cosine, sine;  // of twice the position angle
  double along, across;
};

TiltErrors tilt_errors(const Tilt& tilt, const Matrix& covariance) {
  const double eta = tilt.eta(), c = eta > 0 ? tilt.along / eta : 1, s = eta > 0 ? tilt.across / eta : 0;
  const double aa = covariance[0][0], ab = covariance[0][1], bb = covariance[1][1];
  return {c, s, std::sqrt(c * c * aa + 2 * c * s * ab + s * s * bb), std::sqrt(s * s * aa - 2 * c * s * ab + c * c * bb)};
}

/// Whether a disc seen face on is further from the fit than three sigma of two parameters.
bool is_tilted(const Tilt& tilt, const Matrix& covariance) {
  const double significant = -2 * std::log(std::erfc(significant_sigma / std::sqrt(2.0)));
  const double determinant = covariance[0][0] * covariance[1][1] - covariance[0][1] * covariance[0][1];
  const double distance = (tilt.along * tilt.along * covariance[1][1] - 2 * tilt.along * tilt.across * covariance[0][1] +
                           tilt.across * tilt.across * covariance[0][0]) /
                          determinant;
  return distance > significant;
}

double inclination_at(double eta) { return Tilt{std::max(0.0, eta), 0}.inclination(); }

/// Geometry, errors and correlations of the parameters and their covariance.
void set_geometry(GeometryFit& result, const NormalEquations::Vector& at, const Matrix& covariance) {
  const Tilt tilt{at[place::along], at[place::across]};
  const auto errors = tilt_errors(tilt, covariance);
  const double eta = tilt.eta();
  result.geometry = {tilt.inclination(), tilt.position_angle(), at[place::east], at[place::north]};
  result.inclination_found = is_tilted(tilt, covariance);
  const double angle_error = eta > 0 ? errors.across / (2 * eta) : units::pi / 2;
  result.errors = {.inclination = (inclination_at(eta + errors.along) - inclination_at(eta - errors.along)) / 2,
                   .position_angle = result.inclination_found ? std::min(angle_error, units::pi / 2) : units::pi / 2,
                   .offset_east = std::sqrt(covariance[place::east][place::east]),
                   .offset_north = std::sqrt(covariance[place::north][place::north])};
  // Correlations do not change with the units of either: those of eta and of the direction across it.
  const std::array<std::array<double, 4>, 4> rotation = {
      {{errors.cosine, errors.sine, 0, 0}, {-errors.sine, errors.cosine, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}};
  std::array<std::array<double, 4>, 4> turned{};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t k = 0; k < 4; ++k) {
        for (std::size_t l = 0; l < 4; ++l) turned[i][j] += rotation[i][k] * covariance[k][l] * rotation[j][l];
      }
    }
  }
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) result.correlation[i][j] = turned[i][j] / std::sqrt(turned[i][i] * turned[j][j]);
  }
}

/// A size in the plane of the disc, from that which keeps areas: size = s exp(eta/2).
Measured in_plane(const NormalEquations::Vector& at, const Matrix& covariance, std::size_t which) {
  const Tilt tilt{at[place::along], at[place::across]};
  const double eta = tilt.eta(), stretch = std::exp(eta / 2), size = std::abs(at[which]) * stretch;
  const double c = eta > 0 ? tilt.along / eta : 0, s = eta > 0 ? tilt.across / eta : 0;
  const std::array<double, 3> slope = {size * c / 2, size * s / 2, stretch};
  const std::array<std::size_t, 3> parameter = {place::along, place::across, which};
  double variance = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) variance += slope[i] * slope[j] * covariance[parameter[i]][parameter[j]];
  }
  return {size, std::sqrt(variance)};
}

/// The covariance, times the factor by which the residuals are larger than the weights say.
Matrix scaled_covariance(const LeastSquaresFit& fit, double reduced) {
  auto covariance = fit.equations.covariance();
  for (auto& row : covariance) {
    for (auto& value : row) value *= std::max(1.0, reduced);
  }
  return covariance;
}

GeometryFit begin_result(const Visibilities& visibilities, GeometryModel model, const LeastSquaresFit& fit) {
  GeometryFit result;
  result.model = model;
  result.samples = visibilities.nvis() * visibilities.nchan();
  result.chi_squared = std::max(0.0, fit.equations.chi_squared);
  result.iterations = fit.iterations;
  result.converged = fit.converged;
  return result;
}

GeometryFit shape_result(const Visibilities& visibilities, GeometryModel model, const LeastSquaresFit& fit) {
  auto result = begin_result(visibilities, model, fit);
  result.parameters = static_cast<std::int64_t>(fit.equations.parameters);
  const auto covariance = scaled_covariance(fit, result.reduced_chi_squared());
  set_geometry(result, fit.at, covariance);
  result.flux = {fit.at[place::flux], std::sqrt(covariance[place::flux][place::flux])};
  result.size = in_plane(fit.at, covariance, place::size);
  if (model == GeometryModel::ring) result.width = in_plane(fit.at, covariance, place::width);
  return result;
}

GeometryFit profile_result(const Visibilities& visibilities, const LeastSquaresFit& fit, const ProfileKnots& knots) {
  auto result = begin_result(visibilities, GeometryModel::free, fit);
  result.parameters = static_cast<std::int64_t>(place::of_geometry) + knots.count();
  const auto profile = fit_profile(visibilities, fit.at, knots);
  for (std::size_t i = 0; i < knots.precisions.size(); ++i)
    result.chi_squared -= knots.precisions[i] * profile.spline.coefficients[i] * profile.spline.coefficients[i];
  auto covariance = scaled_covariance(fit, result.reduced_chi_squared());
  const double share = noise_share(visibilities, fit.at, knots, fit.equations);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) covariance[i][j] /= (1 - share) * (1 - share);
  }
  set_geometry(result, fit.at, covariance);
  result.profile = profile.spline;
  const auto basis = profile.spline.basis(0);
  std::vector<double> at_zero(profile.spline.coefficients.size());
  for (std::size_t i = 0; i < 4; ++i) at_zero[static_cast<std::size_t>(basis.knot[i])] += basis.value[i];
  const auto solution = profile.factor.solve(at_zero);
  double variance = 0;
  for (std::size_t i = 0; i < solution.size(); ++i) variance += solution[i] * at_zero[i];
  result.flux = {profile.spline.at(0).value, std::sqrt(variance * std::max(1.0, result.reduced_chi_squared()))};
  return result;
}

/// Residuals that are alike over neighbouring samples add up: so much larger are the errors.
void widen_errors(GeometryFit& result, double factor) {
  auto& errors = result.errors;
  errors.inclination *= factor;
  if (result.inclination_found) errors.position_angle = std::min(units::pi / 2, errors.position_angle * factor);
  errors.offset_east *= factor;
  errors.offset_north *= factor;
  result.flux.error *= factor;
  if (result.size) result.size->error *= factor;
  if (result.width) result.width->error *= factor;
}

/// What speaks against the result, and makes its errors larger. @param gain  in chi^2, of a simple model over a point
void add_warnings(GeometryFit& result, const Visibilities& visibilities, double gain) {
  constexpr double too_alike = 1.5,
                   least_gain = 16;  // of three parameters; noise alone gains as much in a thousandth of all cases
  const auto say = [&result](const std::string& text) { result.warnings.push_back(text); };
  if (!result.converged) {
    say(fmt::format("the fit of the geometry has not converged in {} iterations: allow more, or take another model",
                    result.iterations));
  }
  if (!(gain > least_gain * std::max(1.0, result.reduced_chi_squared()))) {
    say("the source is not resolved: a point fits as well; inclination and position angle mean nothing: longer baselines are "
        "needed");
  } else if (result.width && !(result.size->value > significant_sigma * result.size->error)) {
    say("the ring has no hole that the data see, and its radius is not determined: take a Gaussian, or the free model");
  }
  if (!result.inclination_found) {
    say(fmt::format(
        "the disc may be seen face on: its inclination is {:.3g} ± {:.2g} degrees, which leaves the position angle open",
        result.geometry.inclination / units::degree, result.errors.inclination / units::degree));
  }
  result.structure = residual_structure(visibilities, result);
  if (const double noise = std::max(1.0, result.reduced_chi_squared()); result.structure > too_alike * noise) {
    const double factor = std::sqrt(result.structure / noise);
    widen_errors(result, factor);
    say(fmt::format(
        "means of the residuals over parts of the uv plane are {:.3g} times as large as noise makes them: {}; the errors "
        "are {:.3g} times those of noise, and the geometry may be further off than they say",
        std::sqrt(result.structure),
        result.model == GeometryModel::free
            ? "the disc is not symmetric, and its brightest part may be what is fitted, or channels differ"
            : "the source is not what the model says",
        factor));
  }
  log_info(fmt::format("{} samples, {} parameters, {} iterations; residual structure {:.3g}", result.samples, result.parameters,
                       result.iterations, result.structure));
  for (const auto& warning : result.warnings) log_warning(warning);
}

}  // namespace

double GeometryFit::reduced_chi_squared() const {
  return chi_squared / static_cast<double>(std::max<std::int64_t>(1, 2 * samples - parameters));
}

double GeometryFit::model_at(double q) const {
  if (model == GeometryModel::free) return profile.at(q).value;
  const auto shape = shape_of(model);
  return flux.value * shape_value(shape, q, size.value_or(Measured{}).value, width.value_or(Measured{}).value).value;
}

Tensor GeometryFit::model_at(const Tensor& q) const {
  const auto length = q.contiguous();
  auto values = at::empty(length.sizes(), torch::kFloat64);
  auto* value = values.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < length.numel(); ++i) value[i] = model_at(length.const_data_ptr<double>()[i]);
  return values;
}

GeometryFit fit_geometry(const Visibilities& visibilities, const GeometryFitOptions& options) {
  check_fit(visibilities, options);
  const bool free = options.model() == GeometryModel::free;
  const auto [fit, reach] = fit_shape_from_anywhere(visibilities, shape_of(options.model()), options.most_iterations());
  const double gain = chi_squared_of_point(visibilities, fit.at) - fit.equations.chi_squared;
  if (!free) {
    auto result = shape_result(visibilities, options.model(), fit);
    add_warnings(result, visibilities, gain);
    return result;
  }
  const double fwhm = std::abs(fit.at[place::size]);
  const double extent = std::clamp(reach, nearest_reach * fwhm, farthest_reach * fwhm);
  auto knots = choose_knots(visibilities, fit.at, extent);
  auto free_fit = fit_profile_from_anywhere(visibilities, fit.at, knots);
  for (int round = 0; round < 2; ++round) {  // a better geometry shows more of the profile
    knots = choose_knots(visibilities, free_fit.at, extent);
    free_fit = least_squares([&](const NormalEquations::Vector& at) { return profile_equations(visibilities, at, knots); },
                             free_fit.at, options.most_iterations());
  }
  auto result = profile_result(visibilities, free_fit, knots);
  add_warnings(result, visibilities, gain);
  return result;
}

std::string name_of(GeometryModel model) {
  switch (model) {
    case GeometryModel::gaussian:
      return "gaussian";
    case GeometryModel::ring:
      return "ring";
    case GeometryModel::disc:
      return "disc";
    case GeometryModel::free:
      break;
  }
  return "free";
}

}  // namespace mpol
