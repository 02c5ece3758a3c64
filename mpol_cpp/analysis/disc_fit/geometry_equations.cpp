#include <mpol_cpp/analysis/disc_fit/geometry_equations.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <mpol_cpp/analysis/disc_fit/disc_plane.h>
#include <mpol_cpp/analysis/disc_fit/sample_sums.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

using Vector = NormalEquations::Vector;
namespace place = geometry_parameter;

Tilt tilt_of(const Vector& at) { return {at[place::along], at[place::across]}; }

CenteredVisibility centered(const Sample& sample, const Vector& at) { return {sample, at[place::east], at[place::north]}; }

NormalEquations nothing_there(std::size_t parameters) {
  return {.parameters = parameters, .chi_squared = std::numeric_limits<double>::infinity()};
}

/// The part of the equations that imaginary parts make: they tell the centre.
void add_center(NormalEquations& sums, const Sample& sample, double model, double imag) {
  const double by_east = -phase_of_arcsec * sample.u * model, by_north = -phase_of_arcsec * sample.v * model;
  sums.matrix[place::east][place::east] += sample.weight * by_east * by_east;
  sums.matrix[place::east][place::north] += sample.weight * by_east * by_north;
  sums.matrix[place::north][place::north] += sample.weight * by_north * by_north;
  sums.gradient[place::east] += sample.weight * by_east * imag;
  sums.gradient[place::north] += sample.weight * by_north * imag;
}

/// The sums hold the upper triangle only.
void fill_lower(NormalEquations& sums) {
  for (std::size_t i = 0; i < sums.parameters; ++i) {
    for (std::size_t j = 0; j < i; ++j) sums.matrix[i][j] = sums.matrix[j][i];
  }
}

/// Deprojected lengths, and how they change with the tilt: q = q' exp(-eta/2) of the lengths q' that keep areas.
class DeprojectedLength {
 public:
  explicit DeprojectedLength(const Tilt& tilt)
      : length_(tilt),
        scale_(std::exp(-tilt.eta() / 2)),
        along_(tilt.eta() > 0 ? tilt.along / tilt.eta() : 0),
        across_(tilt.eta() > 0 ? tilt.across / tilt.eta() : 0) {}

  TiltedLength::Value at(double u, double v) const {
    const auto tilted = length_.at(u, v);
    return {.q = scale_ * tilted.q,
            .by_along = scale_ * (tilted.by_along - tilted.q * along_ / 2),
            .by_across = scale_ * (tilted.by_across - tilted.q * across_ / 2)};
  }

 private:
  TiltedLength length_;
  double scale_, along_, across_;
};

struct ProfileSums {
  BandMatrix matrix;
  std::vector<double> right;
  double data = 0;  // sum of w |V|^2

  ProfileSums& operator+=(const ProfileSums& other) {
    matrix += other.matrix;
    for (std::size_t i = 0; i < right.size(); ++i) right[i] += other.right[i];
    data += other.data;
    return *this;
  }
};

/// Equations of the geometry, and its products with each B-spline.
struct SlopeSums {
  NormalEquations geometry;
  std::array<std::vector<double>, 2> shared;

  SlopeSums& operator+=(const SlopeSums& other) {
    geometry += other.geometry;
    for (std::size_t k = 0; k < shared.size(); ++k) {
      for (std::size_t i = 0; i < shared[k].size(); ++i) shared[k][i] += other.shared[k][i];
    }
    return *this;
  }
};

SlopeSums slope_sums(const Visibilities& visibilities, const Vector& at, const RadialSpline& spline) {
  const DeprojectedLength length(tilt_of(at));
  const std::vector<double> none(spline.coefficients.size());
  const SlopeSums zero{.geometry = {.parameters = place::of_geometry}, .shared = {none, none}};
  return sum_over_samples(visibilities, zero, [&](SlopeSums& sums, const Sample& sample) {
    const auto [real, imag] = centered(sample, at);
    const auto q = length.at(sample.u, sample.v);
    const auto basis = spline.basis(q.q);
    const auto model = spline.at(basis);
    const std::array<double, 2> slope = {model.slope * q.by_along, model.slope * q.by_across};
    sums.geometry.chi_squared += sample.weight * ((real - model.value) * (real - model.value) + imag * imag);
    for (std::size_t i = 0; i < 2; ++i) {
      sums.geometry.gradient[i] += sample.weight * slope[i] * (real - model.value);
      for (std::size_t j = i; j < 2; ++j) sums.geometry.matrix[i][j] += sample.weight * slope[i] * slope[j];
      for (std::size_t k = 0; k < 4; ++k)
        sums.shared[i][static_cast<std::size_t>(basis.knot[k])] += sample.weight * slope[i] * basis.value[k];
    }
    add_center(sums.geometry, sample, model.value, imag);
  });
}

/// Sums of w dq dq B' B' for (along, along), (along, across), (across, across).
struct CurvatureSums {
  std::array<BandMatrix, 3> products;

  CurvatureSums& operator+=(const CurvatureSums& other) {
    for (std::size_t k = 0; k < products.size(); ++k) products[k] += other.products[k];
    return *this;
  }
};

CurvatureSums curvature_sums(const Visibilities& visibilities, const Vector& at, const RadialSpline& spline) {
  const DeprojectedLength length(tilt_of(at));
  const BandMatrix none(spline.count());
  return sum_over_samples(visibilities, CurvatureSums{{none, none, none}}, [&](CurvatureSums& sums, const Sample& sample) {
    const auto q = length.at(sample.u, sample.v);
    const auto basis = spline.basis(q.q);
    const std::array<double, 3> factor = {q.by_along * q.by_along, q.by_along * q.by_across, q.by_across * q.by_across};
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        if (basis.knot[j] < basis.knot[i]) continue;
        const double product = sample.weight * basis.slope[i] * basis.slope[j];
        for (std::size_t k = 0; k < 3; ++k) sums.products[k].at(basis.knot[i], basis.knot[j]) += factor[k] * product;
      }
    }
  });
}

/// The covariance that noise gives the coefficients, N^-1 - N^-1 P N^-1 with the precisions P, within the band.
BandMatrix coefficient_noise(const FittedProfile& profile, const ProfileKnots& knots) {
  const auto count = knots.count();
  std::vector<std::vector<double>> inverse;
  for (std::size_t k = 0; k < knots.precisions.size(); ++k) {
    std::vector<double> unit(knots.precisions.size());
    unit[k] = 1;
    inverse.push_back(profile.factor.solve(unit));
  }
  BandMatrix noise(count);
  for (std::int64_t i = 0; i < count; ++i) {
    for (auto j = i; j < std::min(count, i + 4); ++j) {
      const auto &row = inverse[static_cast<std::size_t>(i)], &column = inverse[static_cast<std::size_t>(j)];
      double value = row[static_cast<std::size_t>(j)];
      for (std::size_t k = 0; k < row.size(); ++k) value -= row[k] * knots.precisions[k] * column[k];
      noise.at(i, j) = value;
    }
  }
  return noise;
}

/// The trace of the product of two symmetric band matrices.
double trace_of_product(const BandMatrix& a, const BandMatrix& b) {
  double trace = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    trace += a.at(i, i) * b.at(i, i);
    for (auto j = i + 1; j < std::min(a.size(), i + 4); ++j) trace += 2 * a.at(i, j) * b.at(i, j);
  }
  return trace;
}

}  // namespace

NormalEquations shape_equations(const Visibilities& visibilities, DiscShape shape, const Vector& at) {
  const std::size_t parameters = shape == DiscShape::broad_ring ? 7 : 6;
  if (!(tilt_of(at).eta() < largest_eta)) return nothing_there(parameters);
  const TiltedLength length(tilt_of(at));
  const NormalEquations zero{.parameters = parameters};
  auto equations = sum_over_samples(visibilities, zero, [&](NormalEquations& sums, const Sample& sample) {
    const auto [real, imag] = centered(sample, at);
    const auto q = length.at(sample.u, sample.v);
    const auto unit = shape_value(shape, q.q, at[place::size], at[place::width]);
    const double flux = at[place::flux], model = flux * unit.value, residual = real - model;
    const Vector slope = {flux * unit.by_q * q.by_along, flux * unit.by_q * q.by_across, 0, 0, unit.value, flux * unit.by_size,
                          flux * unit.by_width};
    sums.chi_squared += sample.weight * (residual * residual + imag * imag);
    for (const auto i : {place::along, place::across, place::flux, place::size, place::width}) {
      if (i >= parameters) continue;
      sums.gradient[i] += sample.weight * slope[i] * residual;
      for (auto j = i; j < parameters; ++j) sums.matrix[i][j] += sample.weight * slope[i] * slope[j];
    }
    add_center(sums, sample, model, imag);
  });
  fill_lower(equations);
  return equations;
}

FittedProfile fit_profile(const Visibilities& visibilities, const Vector& at, const ProfileKnots& knots) {
  constexpr double smoothness = 1e-10;
  const DeprojectedLength length(tilt_of(at));
  FittedProfile profile;
  profile.spline = {.spacing = knots.spacing, .coefficients = std::vector<double>(knots.precisions.size())};
  const ProfileSums zero{.matrix = BandMatrix(knots.count()), .right = profile.spline.coefficients};
  auto sums = sum_over_samples(visibilities, zero, [&](ProfileSums& own, const Sample& sample) {
    const auto [real, imag] = centered(sample, at);
    const auto basis = profile.spline.basis(length.at(sample.u, sample.v).q);
    own.data += sample.weight * (real * real + imag * imag);
    for (std::size_t i = 0; i < 4; ++i) {
      const double weighted = sample.weight * basis.value[i];
      if (weighted == 0) continue;
      own.right[static_cast<std::size_t>(basis.knot[i])] += weighted * real;
      for (std::size_t j = 0; j < 4; ++j) {
        if (basis.knot[j] >= basis.knot[i]) own.matrix.at(basis.knot[i], basis.knot[j]) += weighted * basis.value[j];
      }
    }
  });
  for (std::int64_t i = 0; i < knots.count(); ++i) sums.matrix.at(i, i) += knots.precisions[static_cast<std::size_t>(i)];
  profile.factor = sums.matrix;
  profile.factor.add_smoothness(smoothness);
  profile.factor.factorize();
  profile.gains = profile.factor.forward(sums.right);
  for (auto& gain : profile.gains) gain *= gain;
  profile.spline.coefficients = profile.factor.solve(sums.right);
  const auto product = sums.matrix.times(profile.spline.coefficients);
  profile.chi_squared = sums.data;
  for (std::size_t i = 0; i < product.size(); ++i)
    profile.chi_squared += profile.spline.coefficients[i] * (product[i] - 2 * sums.right[i]);
  return profile;
}

NormalEquations profile_equations(const Visibilities& visibilities, const Vector& at, const ProfileKnots& knots) {
  if (!(tilt_of(at).eta() < largest_eta)) return nothing_there(place::of_geometry);
  const auto profile = fit_profile(visibilities, at, knots);
  auto sums = slope_sums(visibilities, at, profile.spline);
  for (std::size_t j = 0; j < 2; ++j) {
    const auto explained = profile.factor.solve(sums.shared[j]);
    for (std::size_t i = 0; i <= j; ++i) {
      for (std::size_t k = 0; k < explained.size(); ++k) sums.geometry.matrix[i][j] -= sums.shared[i][k] * explained[k];
    }
  }
  for (std::size_t i = 0; i < knots.precisions.size(); ++i)
    sums.geometry.chi_squared += knots.precisions[i] * profile.spline.coefficients[i] * profile.spline.coefficients[i];
  fill_lower(sums.geometry);
  return sums.geometry;
}

double noise_share(const Visibilities& visibilities, const Vector& at, const ProfileKnots& knots,
                   const NormalEquations& equations) {
  constexpr double most = 0.75;
  const auto profile = fit_profile(visibilities, at, knots);
  const auto sums = curvature_sums(visibilities, at, profile.spline);
  const auto noise = coefficient_noise(profile, knots);
  const double aa = trace_of_product(sums.products[0], noise), ab = trace_of_product(sums.products[1], noise),
               bb = trace_of_product(sums.products[2], noise);
  const auto& h = equations.matrix;
  const double determinant = h[0][0] * h[1][1] - h[0][1] * h[0][1];
  const double share = (h[1][1] * aa - 2 * h[0][1] * ab + h[0][0] * bb) / (2 * determinant);
  return share >= 0 ? std::min(share, most) : most;
}

}  // namespace mpol
