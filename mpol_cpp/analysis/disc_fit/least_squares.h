#pragma once

#include <array>
#include <cstddef>
#include <functional>

namespace mpol {

/// chi^2 of a few parameters and what Gauss and Newton make of its surroundings.
struct NormalEquations {
  static constexpr std::size_t most = 7;
  using Vector = std::array<double, most>;
  using Matrix = std::array<Vector, most>;

  std::size_t parameters = 0;
  double chi_squared = 0;
  Matrix matrix{};    ///< J^T W J
  Vector gradient{};  ///< J^T W r: minus half the gradient of chi^2

  NormalEquations& operator+=(const NormalEquations& other);
  /// The inverse of the matrix; elements of what is not determined are huge.
  Matrix covariance() const;
};

/// Where Levenberg's and Marquardt's method ended.
struct LeastSquaresFit {
  NormalEquations::Vector at{};
  NormalEquations equations;
  int iterations = 0;
  bool converged = false;  ///< no step, or none that is promised, makes chi^2 smaller by 1e-4
};

/// Minimises chi^2 from a start. `evaluate` gives the equations at a place, with a chi^2 that is not finite where none may be.
LeastSquaresFit least_squares(const std::function<NormalEquations(const NormalEquations::Vector&)>& evaluate,
                              const NormalEquations::Vector& start, int most_iterations);

}  // namespace mpol
