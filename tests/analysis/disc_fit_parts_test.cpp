// What fits of discs are made of.
#include "catch.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/disc_fit/least_squares.h>
#include <mpol_cpp/analysis/disc_fit/radial_spline.h>
#include <mpol_cpp/analysis/disc_fit/tilt.h>
#include <mpol_cpp/core/units.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

DiscGeometry disc(double inclination, double position_angle) {
  return {.inclination = inclination * units::degree, .position_angle = position_angle * units::degree};
}

/// A symmetric positive definite matrix of band three, and the same dense.
std::pair<BandMatrix, Tensor> random_band(std::int64_t size, std::uint64_t seed) {
  const auto numbers = normal({size, 4}, torch::kFloat64, seed);
  const auto dense = at::zeros({size, size}, torch::kFloat64);
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t k = 0; k < 4 && row + k < size; ++k) dense[row + k][row] = numbers[row][k] + (k == 0 ? 4 : 0);
  }
  const auto product = dense.mm(dense.t());
  BandMatrix band(size);
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t column = row; column < std::min(size, row + 4); ++column)
      band.at(row, column) = product[row][column].item<double>();
  }
  return {band, product};
}

std::vector<double> numbers(std::int64_t size, std::uint64_t seed) {
  const auto values = normal({size}, torch::kFloat64, seed);
  return {values.data_ptr<double>(), values.data_ptr<double>() + size};
}

/// chi^2 of y = a exp(-b x) at data without noise and weights of 2; not finite for b < 0.
NormalEquations decay_equations(const NormalEquations::Vector& at, double a, double b) {
  NormalEquations equations;
  equations.parameters = 2;
  if (at[1] < 0) equations.chi_squared = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 20; ++i) {
    const double x = 0.1 * i, model = at[0] * std::exp(-at[1] * x), residual = a * std::exp(-b * x) - model;
    const std::array<double, 2> slope = {std::exp(-at[1] * x), -x * model};
    equations.chi_squared += 2 * residual * residual;
    for (std::size_t p = 0; p < 2; ++p) {
      equations.gradient[p] += 2 * slope[p] * residual;
      for (std::size_t q = 0; q < 2; ++q) equations.matrix[p][q] += 2 * slope[p] * slope[q];
    }
  }
  return equations;
}

}  // namespace

TEST_CASE("a tilt is an inclination and a position angle", "[analysis][geometry][quick]") {
  for (const double inclination : {1.0, 35.0, 80.0}) {
    for (const double position_angle : {0.0, 30.0, 95.0, 170.0}) {
      CAPTURE(inclination, position_angle);
      const auto tilt = Tilt::of(disc(inclination, position_angle));
      CHECK(tilt.inclination() == Approx(inclination * units::degree).epsilon(1e-10));
      CHECK(tilt.position_angle() == Approx(position_angle * units::degree).margin(1e-9));
    }
  }
  CHECK(Tilt::of(disc(0, 70)).eta() == 0);
}

TEST_CASE("lengths under a tilt are those of the disc's own plane, with their derivatives", "[analysis][geometry][quick]") {
  for (const double inclination : {0.0, 1e-4, 40.0, 75.0}) {
    CAPTURE(inclination);
    const auto geometry = disc(inclination, 60);
    const auto tilt = Tilt::of(geometry);
    const double cosine = std::cos(geometry.inclination), s = std::sin(geometry.position_angle),
                 c = std::cos(geometry.position_angle);
    for (const auto& [u, v] : {std::pair(3e5, -1e5), std::pair(-2e4, 5e5)}) {
      const auto length = TiltedLength(tilt).at(u, v);
      const double major = u * s + v * c, minor = (u * c - v * s) * cosine;
      CHECK(length.q == Approx(std::hypot(major, minor) / std::sqrt(cosine)).epsilon(1e-9));
      constexpr double step = 1e-5;
      const auto q_at = [&, u = u, v = v](double along, double across) {
        return TiltedLength({tilt.along + along, tilt.across + across}).at(u, v).q;
      };
      CHECK((q_at(step, 0) - q_at(-step, 0)) / (2 * step) == Approx(length.by_along).epsilon(1e-5).margin(1e-3));
      CHECK((q_at(0, step) - q_at(0, -step)) / (2 * step) == Approx(length.by_across).epsilon(1e-5).margin(1e-3));
    }
  }
}

TEST_CASE("a radial spline is even, smooth, and gives constants back", "[analysis][geometry][quick]") {
  const RadialSpline ones{0.5, std::vector<double>(8, 1.0)};
  for (const double radius : {0.0, 0.1, 0.5, 1.73, 2.9}) CHECK(ones.at(radius).value == Approx(1).epsilon(1e-12));
  const RadialSpline spline{0.5, numbers(8, 3)};
  CHECK(spline.at(0.0).slope == Approx(0).margin(1e-12));
  CHECK(spline.at(9 * 0.5 + 1e-9).value == 0);
  for (const double radius : {0.2, 0.5, 1.0, 1.3, 3.9, 4.3}) {  // at knots, too
    CAPTURE(radius);
    constexpr double step = 1e-6;
    CHECK((spline.at(radius + step).value - spline.at(radius - step).value) / (2 * step) ==
          Approx(spline.at(radius).slope).margin(1e-7));
  }
}

TEST_CASE("band matrices multiply and solve as dense ones do", "[analysis][geometry][quick]") {
  constexpr std::int64_t size = 9;
  auto [band, dense] = random_band(size, 5);
  const auto right = numbers(size, 6);
  const auto expected = dense.mv(at::tensor(right, torch::kFloat64));
  const auto product = band.times(right);
  auto smooth = band;
  band.factorize();
  const auto solution = band.solve(right);
  const auto exact = at::linalg_solve(dense, at::tensor(right, torch::kFloat64));
  const auto forward = band.forward(right);
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(product[at] == Approx(expected[i].item<double>()).epsilon(1e-12));
    CHECK(solution[at] == Approx(exact[i].item<double>()).epsilon(1e-9));
  }
  // The squares of its first n elements are what the first n unknowns alone take from chi^2, b.A^-1 b.
  double taken = 0;
  for (std::int64_t n = 1; n <= size; ++n) {
    taken += forward[static_cast<std::size_t>(n - 1)] * forward[static_cast<std::size_t>(n - 1)];
    const auto part = at::tensor(right, torch::kFloat64).slice(0, 0, n);
    const auto alone = at::linalg_solve(dense.slice(0, 0, n).slice(1, 0, n), part).dot(part).item<double>();
    CHECK(taken == Approx(alone).epsilon(1e-9));
  }
  // Smoothness adds nothing to straight lines but at the ends of nothing.
  std::vector<double> line;
  for (std::int64_t i = 0; i < size; ++i) line.push_back(2 - 0.3 * static_cast<double>(i));
  const auto before = smooth.times(line);
  smooth.add_smoothness(0.1);
  const auto after = smooth.times(line);
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] == Approx(before[i]).epsilon(1e-9));
}

TEST_CASE("least squares finds a decay, its covariance, and stays where chi^2 is finite", "[analysis][geometry][quick]") {
  constexpr double a = 3, b = 1.7;
  int evaluations = 0;
  const auto evaluate = [&](const NormalEquations::Vector& at) {
    ++evaluations;
    return decay_equations(at, a, b);
  };
  const auto fit = least_squares(evaluate, {0.5, 0.01}, 200);
  CHECK(fit.converged);
  CHECK(fit.at[0] == Approx(a).epsilon(1e-5));
  CHECK(fit.at[1] == Approx(b).epsilon(1e-5));
  CHECK(fit.equations.chi_squared < 1e-8);
  CHECK(evaluations < 100);
  const auto covariance = fit.equations.covariance();
  const auto& m = fit.equations.matrix;
  const double determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
  CHECK(covariance[0][0] == Approx(m[1][1] / determinant).epsilon(1e-9));
  CHECK(covariance[0][1] == Approx(-m[0][1] / determinant).epsilon(1e-9));
  CHECK_FALSE(least_squares(evaluate, {0.5, 0.01}, 1).converged);
}
