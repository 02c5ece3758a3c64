#include "catch.h"

#include <cmath>
#include <limits>
#include <vector>

#include <mpol_cpp/ops/fused/cpu/fused_kernels.h>

#include "instruction_sets.h"

using namespace mpol;
using mpol::testing::instruction_sets;

namespace {

template <typename T>
using Function = void (*)(const T*, T*, std::int64_t);
using Reference = long double (*)(long double);

/// Values from `first` to `last`, evenly spaced in their logarithm.
template <typename T>
std::vector<T> spread(double first, double last, int count) {
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(count));
  const double step = (std::log(last) - std::log(first)) / (count - 1.0);
  for (int i = 0; i < count; ++i) values.push_back(static_cast<T>(std::exp(std::log(first) + i * step)));
  return values;
}

/// Largest error in units in the last place of the result.
template <typename T>
double worst_error(Function<T> function, Reference reference, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  function(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = reference(static_cast<long double>(x[i]));
    const auto rounded = static_cast<T>(exact);
    const T unit = std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity()) - std::abs(rounded);
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(y[i]) - exact) / unit));
  }
  return worst;
}

long double softplus(long double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
long double softplus_derivative(long double x) { return x > 20 ? 1 : 1 / (1 + std::exp(-x)); }

template <typename T>
std::vector<T> base_pixels() {
  const double largest = std::is_same_v<T, float> ? 87 : 708;
  auto values = spread<T>(1e-12, largest, 20'003);
  for (const T value : std::vector<T>(values)) values.push_back(-value);
  values.push_back(0);
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("square roots at the ends of the range are alike on each instruction set", "[ops][fused][quick]", float,
                   double) {
  using T = TestType;
  const T infinity = std::numeric_limits<T>::infinity(), largest = std::numeric_limits<T>::max();
  const std::vector<T> x{0, largest, infinity, std::numeric_limits<T>::quiet_NaN()};
  for (const auto isa : instruction_sets()) {
    CAPTURE(to_string(isa));
    std::vector<T> y(x.size());
    ops::fused_kernels<T>(isa).functions.square_root(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    CHECK(y[0] == 0);
    CHECK(y[1] == Approx(std::sqrt(largest)).epsilon(1e-6));
    CHECK(y[2] == infinity);
    CHECK(std::isnan(y[3]));
  }
}

TEMPLATE_TEST_CASE("a gradient whose square overflows leaves no number on each instruction set", "[ops][fused][quick]", float,
                   double) {
  using T = TestType;
  constexpr std::size_t n = 40, margin = 64;
  const T huge = std::sqrt(std::numeric_limits<T>::max()) * 100;
  for (const auto isa : instruction_sets()) {
    CAPTURE(to_string(isa));
    std::vector<T> row(n + 2 * margin, 0), zeros(row), blended(row), base(n, T(0.5)), first(n, 0), second(n, 0);
    row[margin + 20] = huge;  // and, smoothed, its neighbours
    ops::UpdateSettings settings;
    settings.rate = 0.1;
    ops::LaneSum parameters;
    ops::fused_kernels<T>(isa).update(ops::FusedUpdate::adam, zeros.data() + margin, row.data() + margin, zeros.data() + margin,
                                      blended.data() + margin, {base.data(), first.data(), second.data(), nullptr}, n, settings,
                                      parameters);
    CHECK(std::isfinite(base[10]));
    CHECK(std::isnan(base[20]));
    CHECK(std::isnan(parameters.total()));
  }
}

TEMPLATE_TEST_CASE("vector functions are within their units in the last place", "[ops][fused][quick]", float, double) {
  using T = TestType;
  const double smallest = std::is_same_v<T, float> ? 1e-37 : 1e-300, largest = 1 / smallest;
  const int count = 40'001;
  for (const auto isa : instruction_sets()) {
    const auto& functions = ops::fused_kernels<T>(isa).functions;
    CAPTURE(to_string(isa));
    CHECK(worst_error<T>(
              functions.exp_of_negative, [](long double x) { return std::exp(-std::abs(x)); }, base_pixels<T>()) < 3);
    CHECK(worst_error<T>(
              functions.log1p_of_fraction, [](long double x) { return std::log1p(x); }, spread<T>(smallest, 1, count)) < 3);
    CHECK(worst_error<T>(
              functions.logarithm, [](long double x) { return std::log(x); }, spread<T>(smallest, largest, count)) < 3);
    CHECK(worst_error<T>(
              functions.logarithm, [](long double x) { return std::log(x); }, spread<T>(0.5, 2, count)) < 3);
    CHECK(worst_error<T>(
              functions.reciprocal_square_root, [](long double x) { return 1 / std::sqrt(x); },
              spread<T>(smallest, largest, count)) < 3);
    CHECK(worst_error<T>(
              functions.square_root, [](long double x) { return std::sqrt(x); }, spread<T>(smallest, largest, count)) < 3);
    CHECK(worst_error<T>(functions.softplus, softplus, base_pixels<T>()) < 4);
    CHECK(worst_error<T>(functions.softplus_derivative, softplus_derivative, base_pixels<T>()) < 4);
  }
}

TEMPLATE_TEST_CASE("vector functions keep the special values that a fit can meet", "[ops][fused][quick]", float, double) {
  using T = TestType;
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{-infinity, -2000, 0, 20, 2000, infinity, nan};
  std::vector<T> y(x.size());
  for (const auto isa : instruction_sets()) {
    const auto kernels = ops::fused_kernels<T>(isa);
    const auto count = static_cast<std::int64_t>(x.size());
    CAPTURE(to_string(isa));
    kernels.functions.softplus(x.data(), y.data(), count);
    CHECK((y[0] == 0 && y[1] == 0 && y[4] == 2000 && y[5] == infinity && std::isnan(y[6])));
    CHECK(std::abs(y[2] - std::log(T(2))) < 1e-7);
    kernels.functions.softplus_derivative(x.data(), y.data(), count);
    CHECK((y[0] == 0 && y[1] == 0 && y[2] == T(0.5) && y[4] == 1 && y[5] == 1 && std::isnan(y[6])));
    kernels.functions.logarithm(&x[6], &y[6], 1);
    CHECK(std::isnan(y[6]));
    const T zero = 0;
    kernels.functions.square_root(&zero, y.data(), 1);
    CHECK(y[0] == 0);
  }
}
