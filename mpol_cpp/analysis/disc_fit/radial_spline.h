#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace mpol {

/// A smooth even function of a radius: a cubic spline on knots at 0, spacing, 2 spacing, …, as a sum of `count` B-splines. The
/// one of knot -1 has the coefficient of that of knot 1, which makes the function even. Beyond (count + 1) spacings it is zero.
struct RadialSpline {
  double spacing = 1;                ///< of the knots, in the unit of the radius, > 0
  std::vector<double> coefficients;  ///< of the B-splines of knots 0, 1, …

  /// The four B-splines that are not zero at a radius, by their knots, and their derivatives.
  struct Basis {
    std::array<std::int64_t, 4> knot;    ///< numbers of the knots; that of -1 counts as 1
    std::array<double, 4> value, slope;  ///< of each B-spline, and its derivative by the radius
  };

  /// B-splines, one for each coefficient.
  std::int64_t count() const { return static_cast<std::int64_t>(coefficients.size()); }
  /// Those of knots >= count() have the value 0 and the first one's knot. There must be two knots at least.
  Basis basis(double radius) const;

  /// The function and its derivative.
  struct Value {
    double value = 0, slope = 0;  ///< in the coefficients' unit, and in that over the radius'
  };
  Value at(const Basis& basis) const;                          ///< at the radius that the basis is of
  Value at(double radius) const { return at(basis(radius)); }  ///< at a radius >= 0
};

/// A symmetric positive definite matrix whose elements are zero more than three places off its diagonal: what least squares
/// with B-splines lead to.
class BandMatrix {
 public:
  /// All zero; size >= 0.
  explicit BandMatrix(std::int64_t size) : size_(size), band_(static_cast<std::size_t>(size * width)) {}

  std::int64_t size() const { return size_; }  ///< rows, and columns
  /// The element (row, column), row <= column <= row + 3.
  double& at(std::int64_t row, std::int64_t column) { return band_[static_cast<std::size_t>(row * width + column - row)]; }
  /// The same, to be read.
  double at(std::int64_t row, std::int64_t column) const { return band_[static_cast<std::size_t>(row * width + column - row)]; }

  BandMatrix& operator+=(const BandMatrix& other);  ///< @param other  of the same size
  /// The product with a vector of size() elements.
  std::vector<double> times(const std::vector<double>& vector) const;

  /// Adds `factor` times the largest diagonal element times the squared second differences: what no sample determines follows
  /// its neighbours in a straight line.
  void add_smoothness(double factor);
  /// Becomes its Cholesky factor, for solve(). An element that is not positive (nothing determines it) becomes 1e-300.
  void factorize();
  /// The factor's own inverse times a vector, of a factorized matrix: its first n elements are those of the first n rows and
  /// columns alone, so that their squares are what each B-spline takes from chi^2 beside those before it.
  std::vector<double> forward(std::vector<double> right) const;
  /// The solution for one right hand side, of a factorized matrix.
  std::vector<double> solve(std::vector<double> right) const;

 private:
  static constexpr std::int64_t width = 4;
  std::int64_t size_;
  std::vector<double> band_;
};

}  // namespace mpol
