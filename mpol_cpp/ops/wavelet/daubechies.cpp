#include <mpol_cpp/ops/wavelet/daubechies.h>

#include <cmath>
#include <complex>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::ops {
namespace {

using Complex = std::complex<long double>;

/// The roots of sum_k coefficients[k] y^k, all at once.
/// Source: Durand 1960, Kerner 1966.
std::vector<Complex> roots_of(const std::vector<long double>& coefficients) {
  const auto degree = coefficients.size() - 1;
  std::vector<Complex> roots;
  for (std::size_t i = 0; i < degree; ++i) roots.push_back(std::pow(Complex(0.4L, 0.9L), static_cast<int>(i)));
  constexpr int enough = 500;  // they double their digits each time once they are near
  for (int step = 0; step < enough; ++step) {
    for (std::size_t i = 0; i < degree; ++i) {
      Complex value = coefficients[degree], others = coefficients[degree];
      for (auto k = degree; k-- > 0;) value = value * roots[i] + coefficients[k];
      for (std::size_t j = 0; j < degree; ++j) {
        if (j != i) others *= roots[i] - roots[j];
      }
      roots[i] -= value / others;
    }
  }
  return roots;
}

/// By spectral factorization: with P(y) = sum_{k<n} C(n-1+k, k) y^k and y = (2 - z - 1/z)/4, the filter is (1 + z)^n times the
/// factors of those roots z of P that lie within the unit circle.
std::vector<double> low_pass(std::int64_t n) {
  std::vector<long double> polynomial = {1};
  for (std::int64_t k = 1; k < n; ++k)
    polynomial.push_back(polynomial.back() * static_cast<long double>(n - 1 + k) / static_cast<long double>(k));
  std::vector<Complex> filter = {1};
  const auto multiply = [&](const Complex& root) {  // by (z - root)
    std::vector<Complex> product(filter.size() + 1);
    for (std::size_t i = 0; i < filter.size(); ++i) {
      product[i] += filter[i];
      product[i + 1] -= root * filter[i];
    }
    filter = std::move(product);
  };
  for (std::int64_t k = 0; k < n; ++k) multiply(-1);
  for (const auto& y : roots_of(polynomial)) {
    const Complex half = Complex(1) - Complex(2) * y, root = std::sqrt(half * half - Complex(1));
    const Complex one = half + root, other = half - root;
    multiply(std::abs(one) < 1 ? one : other);
  }
  long double sum = 0;
  for (const auto& value : filter) sum += value.real();
  std::vector<double> result;
  for (const auto& value : filter) result.push_back(static_cast<double>(value.real() * std::sqrt(2.0L) / sum));
  return result;
}

DaubechiesFilters with_high_pass(std::vector<double> low) {
  DaubechiesFilters filters{std::move(low), {}};
  const auto count = filters.low.size();
  for (std::size_t i = 0; i < count; ++i) filters.high.push_back((i % 2 == 0 ? 1 : -1) * filters.low[count - 1 - i]);
  return filters;
}

}  // namespace

const DaubechiesFilters& daubechies_filters(std::int64_t vanishing_moments) {
  static const auto all = [] {
    std::vector<DaubechiesFilters> filters;
    for (std::int64_t n = 1; n <= most_vanishing_moments; ++n) filters.push_back(with_high_pass(low_pass(n)));
    return filters;
  }();
  if (vanishing_moments < 1 || vanishing_moments > most_vanishing_moments) {
    throw ValueError(fmt::format("there is no Daubechies filter of {} vanishing moments here: give 1 to {}", vanishing_moments,
                                 most_vanishing_moments));
  }
  return all[static_cast<std::size_t>(vanishing_moments - 1)];
}

}  // namespace mpol::ops
