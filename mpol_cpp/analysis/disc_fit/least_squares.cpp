#include <mpol_cpp/analysis/disc_fit/least_squares.h>

#include <algorithm>
#include <cmath>

namespace mpol {
namespace {

using Vector = NormalEquations::Vector;
using Matrix = NormalEquations::Matrix;

/// The solution of (matrix + damping diag matrix) x = right, in units in which the diagonal is 1.
Vector damped_solution(const NormalEquations& equations, double damping, const Vector& right) {
  constexpr double smallest_pivot = 1e-14;
  const auto n = equations.parameters;
  Vector scale{}, x{};
  for (std::size_t i = 0; i < n; ++i) scale[i] = equations.matrix[i][i] > 0 ? 1 / std::sqrt(equations.matrix[i][i]) : 1;
  Matrix factor{};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double value = equations.matrix[i][j] * scale[i] * scale[j] + (i == j ? damping : 0);
      for (std::size_t k = 0; k < j; ++k) value -= factor[i][k] * factor[j][k];
      factor[i][j] = i == j ? std::sqrt(std::max(smallest_pivot, value)) : value / factor[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = right[i] * scale[i];
    for (std::size_t k = 0; k < i; ++k) x[i] -= factor[i][k] * x[k];
    x[i] /= factor[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= factor[k][i] * x[k];
    x[i] /= factor[i][i];
  }
  for (std::size_t i = 0; i < n; ++i) x[i] *= scale[i];
  return x;
}

/// By how much chi^2 would fall if it were the parabola that it looks like.
double promised_fall(const NormalEquations& equations) {
  const auto step = damped_solution(equations, 0, equations.gradient);
  double fall = 0;
  for (std::size_t i = 0; i < equations.parameters; ++i) fall += step[i] * equations.gradient[i];
  return fall;
}

}  // namespace

NormalEquations& NormalEquations::operator+=(const NormalEquations& other) {
  parameters = other.parameters;
  chi_squared += other.chi_squared;
  for (std::size_t i = 0; i < parameters; ++i) {
    gradient[i] += other.gradient[i];
    for (std::size_t j = 0; j < parameters; ++j) matrix[i][j] += other.matrix[i][j];
  }
  return *this;
}

Matrix NormalEquations::covariance() const {
  Matrix inverse{};
  for (std::size_t column = 0; column < parameters; ++column) {
    Vector unit{};
    unit[column] = 1;
    const auto solution = damped_solution(*this, 0, unit);
    for (std::size_t row = 0; row < parameters; ++row) inverse[row][column] = solution[row];
  }
  return inverse;
}

LeastSquaresFit least_squares(const std::function<NormalEquations(const Vector&)>& evaluate, const Vector& start,
                              int most_iterations) {
  constexpr double least_fall = 1e-12, enough_fall = 1e-4, no_progress = 1e-5, largest_damping = 1e8;
  constexpr int standing_still = 4;
  int still = 0;
  LeastSquaresFit fit{.at = start, .equations = evaluate(start)};
  double damping = 1e-3;
  for (; fit.iterations < most_iterations && still < standing_still && promised_fall(fit.equations) > least_fall;
       ++fit.iterations) {
    const auto step = damped_solution(fit.equations, damping, fit.equations.gradient);
    auto place = fit.at;
    for (std::size_t i = 0; i < fit.equations.parameters; ++i) place[i] += step[i];
    auto there = evaluate(place);
    if (there.chi_squared <= fit.equations.chi_squared) {
      still = fit.equations.chi_squared - there.chi_squared < no_progress ? still + 1 : 0;
      fit.at = place;
      fit.equations = there;
      damping = std::max(1e-12, damping / 10);
    } else if ((damping *= 10) > largest_damping) {
      still = standing_still;  // nothing is better, however small the step
    }
  }
  fit.converged = still == standing_still || promised_fall(fit.equations) < enough_fall;
  return fit;
}

}  // namespace mpol
