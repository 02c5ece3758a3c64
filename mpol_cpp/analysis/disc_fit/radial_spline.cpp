#include <mpol_cpp/analysis/disc_fit/radial_spline.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace mpol {

RadialSpline::Basis RadialSpline::basis(double radius) const {
  const double place = std::abs(radius) / spacing;
  if (!(place < static_cast<double>(count()) + 1)) return {};
  const auto interval = static_cast<std::int64_t>(place);
  const double t = place - static_cast<double>(interval), s = 1 - t, per = 1 / spacing;
  Basis basis{.knot = {std::abs(interval - 1), interval, interval + 1, interval + 2},
              .value = {s * s * s / 6, (4 - 6 * t * t + 3 * t * t * t) / 6, (4 - 6 * s * s + 3 * s * s * s) / 6, t * t * t / 6},
              .slope = {-per * s * s / 2, per * (-12 * t + 9 * t * t) / 6, per * (12 * s - 9 * s * s) / 6, per * t * t / 2}};
  for (std::size_t i = 0; i < basis.knot.size(); ++i) {
    if (basis.knot[i] < count()) continue;
    basis.knot[i] = basis.knot[0];
    basis.value[i] = basis.slope[i] = 0;
  }
  return basis;
}

RadialSpline::Value RadialSpline::at(const Basis& basis) const {
  Value sum;
  if (coefficients.empty()) return sum;
  for (std::size_t i = 0; i < basis.knot.size(); ++i) {
    const double coefficient = coefficients[static_cast<std::size_t>(basis.knot[i])];
    sum.value += coefficient * basis.value[i];
    sum.slope += coefficient * basis.slope[i];
  }
  return sum;
}

BandMatrix& BandMatrix::operator+=(const BandMatrix& other) {
  for (std::size_t i = 0; i < band_.size(); ++i) band_[i] += other.band_[i];
  return *this;
}

std::vector<double> BandMatrix::times(const std::vector<double>& vector) const {
  std::vector<double> product(vector.size());
  for (std::int64_t row = 0; row < size_; ++row) {
    const auto r = static_cast<std::size_t>(row);
    product[r] += at(row, row) * vector[r];
    for (std::int64_t column = row + 1; column < std::min(size_, row + width); ++column) {
      const auto c = static_cast<std::size_t>(column);
      product[r] += at(row, column) * vector[c];
      product[c] += at(row, column) * vector[r];
    }
  }
  return product;
}

void BandMatrix::add_smoothness(double factor) {
  double largest = 0;
  for (std::int64_t row = 0; row < size_; ++row) largest = std::max(largest, at(row, row));
  constexpr std::array<double, 3> difference = {1, -2, 1};
  for (std::int64_t first = 0; first + 2 < size_; ++first) {
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = i; j < 3; ++j)
        at(first + i, first + j) +=
            factor * largest * difference[static_cast<std::size_t>(i)] * difference[static_cast<std::size_t>(j)];
    }
  }
}

void BandMatrix::factorize() {
  constexpr double nothing = 1e-300;
  for (std::int64_t row = 0; row < size_; ++row) {
    at(row, row) = std::sqrt(std::max(nothing, at(row, row)));
    const auto end = std::min(size_, row + width);
    for (std::int64_t column = row + 1; column < end; ++column) at(row, column) /= at(row, row);
    for (std::int64_t i = row + 1; i < end; ++i) {
      for (std::int64_t j = i; j < end; ++j) at(i, j) -= at(row, i) * at(row, j);
    }
  }
}

std::vector<double> BandMatrix::forward(std::vector<double> right) const {
  for (std::int64_t row = 0; row < size_; ++row) {
    auto& value = right[static_cast<std::size_t>(row)];
    value /= at(row, row);
    for (std::int64_t column = row + 1; column < std::min(size_, row + width); ++column)
      right[static_cast<std::size_t>(column)] -= at(row, column) * value;
  }
  return right;
}

std::vector<double> BandMatrix::solve(std::vector<double> right) const {
  right = forward(std::move(right));
  for (std::int64_t row = size_ - 1; row >= 0; --row) {
    auto& value = right[static_cast<std::size_t>(row)];
    for (std::int64_t column = row + 1; column < std::min(size_, row + width); ++column)
      value -= at(row, column) * right[static_cast<std::size_t>(column)];
    value /= at(row, row);
  }
  return right;
}

}  // namespace mpol
