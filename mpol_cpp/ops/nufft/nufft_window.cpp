#include <mpol_cpp/ops/nufft/nufft_window.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::ops {
namespace {

/// The smallest eigenvector of the symmetric tridiagonal matrix, by inverse iteration.
std::vector<double> smallest_eigenvector(const std::vector<double>& diagonal, const std::vector<double>& beside) {
  const auto n = diagonal.size();
  std::vector<double> vector(n, 1.0), pivot(n), reduced(n);
  for (int iteration = 0; iteration < 60; ++iteration) {
    pivot[0] = diagonal[0];
    reduced[0] = vector[0];
    for (std::size_t i = 1; i < n; ++i) {
      const double factor = beside[i - 1] / pivot[i - 1];
      pivot[i] = diagonal[i] - factor * beside[i - 1];
      reduced[i] = vector[i] - factor * reduced[i - 1];
    }
    vector[n - 1] = reduced[n - 1] / pivot[n - 1];
    for (std::size_t i = n - 1; i-- > 0;) vector[i] = (reduced[i] - beside[i] * vector[i + 1]) / pivot[i];
    double square = 0;
    for (const double value : vector) square += value * value;
    for (double& value : vector) value /= std::sqrt(square);
  }
  return vector;
}

std::vector<double> prolate_series(double bandwidth) {
  constexpr int terms = 60;
  std::vector<double> diagonal, beside;
  const double c2 = bandwidth * bandwidth;
  for (int i = 0; i < terms; ++i) {
    const double k = 2.0 * i;
    diagonal.push_back(k * (k + 1) + c2 * (2 * k * (k + 1) - 1) / ((2 * k + 3) * (2 * k - 1)));
    beside.push_back(c2 * (k + 2) * (k + 1) / ((2 * k + 3) * std::sqrt((2 * k + 1) * (2 * k + 5))));
  }
  auto series = smallest_eigenvector(diagonal, beside);
  for (int i = 0; i < terms; ++i) series[static_cast<std::size_t>(i)] *= std::sqrt(4.0 * i + 1);
  return series;
}

/// A series in T_k(2x) as one in x^k.
std::vector<double> monomials(const std::vector<double>& chebyshev) {
  const auto n = chebyshev.size();
  std::vector<double> before(n + 1), current(n + 1), result(n);
  before[0] = 1;
  current[1] = 2;
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < n; ++i) result[i] += chebyshev[k] * before[i];
    std::vector<double> next(n + 1);
    for (std::size_t i = 0; i < n; ++i) next[i + 1] = 4 * current[i];
    for (std::size_t i = 0; i <= n; ++i) next[i] -= before[i];
    before = std::exchange(current, next);
  }
  return result;
}

}  // namespace

NufftWindow::NufftWindow(int width)
    : width_(width), bandwidth_(0.985 * 0.75 * units::pi * width), legendre_(prolate_series(bandwidth_)) {
  const double center = shape(0);
  for (double& factor : legendre_) factor /= center;
}

double NufftWindow::shape(double x) const {
  if (std::abs(x) > 1) return 0;
  double before = 1, current = x, sum = legendre_[0];
  for (std::size_t k = 2; k < 2 * legendre_.size(); ++k) {
    const auto degree = static_cast<double>(k);
    before = std::exchange(current, ((2 * degree - 1) * x * current - (degree - 1) * before) / degree);
    if (k % 2 == 0) sum += legendre_[k / 2] * current;
  }
  return sum;
}

double NufftWindow::transform(double frequency) const {
  return width_ * legendre_[0] * shape(units::pi * width_ * frequency / bandwidth_);
}

std::vector<double> NufftWindow::chebyshev_factors(int cell, int degree) const {
  constexpr int nodes = 48;
  const auto angle = [](int node) { return units::pi * (node + 0.5) / nodes; };
  std::array<double, nodes> values{};
  for (int i = 0; i < nodes; ++i) {
    values[static_cast<std::size_t>(i)] = (*this)(0.5 * std::cos(angle(i)) + (width_ - 1) / 2.0 - cell);
  }
  std::vector<double> factors(static_cast<std::size_t>(degree) + 1);
  for (int k = 0; k <= degree; ++k) {
    double sum = 0;
    for (int i = 0; i < nodes; ++i) sum += values[static_cast<std::size_t>(i)] * std::cos(k * angle(i));
    factors[static_cast<std::size_t>(k)] = sum * (k > 0 ? 2.0 : 1.0) / nodes;
  }
  return factors;
}

template <typename T>
NufftTables<T> NufftWindow::tables() const {
  NufftTables<T> tables = {};
  const int powers = nufft_power_degree<T>(width_), degrees = nufft_dense_degree(width_);
  for (int cell = 0; cell < width_; ++cell) {
    const auto power = monomials(chebyshev_factors(cell, powers));
    for (int k = 0; k <= powers; ++k) {
      const auto factor = static_cast<T>(power[static_cast<std::size_t>(k)]);
      tables.power[k][cell] = tables.power_twice[k][2 * cell] = tables.power_twice[k][2 * cell + 1] = factor;
    }
    const auto chebyshev = chebyshev_factors(cell, degrees);
    for (int k = 0; k <= degrees; ++k) {
      const auto factor = static_cast<T>(chebyshev[static_cast<std::size_t>(k)]);
      tables.chebyshev[k][cell] = factor;
      tables.chebyshev_twice[k][2 * cell] = tables.chebyshev_twice[k][2 * cell + 1] = factor;
      tables.by_cell_twice[cell][2 * k] = tables.by_cell_twice[cell][2 * k + 1] = factor;
    }
  }
  return tables;
}

template NufftTables<float> NufftWindow::tables() const;
template NufftTables<double> NufftWindow::tables() const;

template <typename T>
int nufft_width(double tolerance) {
  constexpr bool single = sizeof(T) == 4;
  constexpr double smallest = single ? 1e-6 : 1e-13;
  if (!(tolerance >= 0.99 * smallest && tolerance <= 0.1)) {
    throw ValueError(fmt::format("a tolerance of {} cannot be had in {}: give one from {} to 0.1{}", tolerance,
                                 single ? "float32" : "float64", smallest, single ? ", or use float64" : ""));
  }
  using Width = std::pair<double, int>;
  const auto widths = single ? std::vector<Width>{{1e-3, 4}, {1e-4, 5}, {1e-5, 6}, {1e-6, 7}}
                             : std::vector<Width>{{1e-5, 6}, {1e-6, 7}, {1e-8, 9}, {1e-11, 12}, {1e-12, 14}, {1e-13, 15}};
  for (const auto& [reached, width] : widths) {
    if (tolerance >= 0.99 * reached) return width;
  }
  return widths.back().second;
}

template int nufft_width<float>(double);
template int nufft_width<double>(double);

}  // namespace mpol::ops
