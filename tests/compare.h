#pragma once

#include <functional>

#include <ATen/ops/equal.h>
#include <ATen/ops/view_as_real.h>
#include <torch/autograd.h>
#include <torch/types.h>

namespace mpol::testing {

using torch::Tensor;

template <typename T>
constexpr torch::Dtype dtype_of() {
  return c10::CppTypeToScalarType<T>::value;
}
template <typename T>
constexpr torch::Dtype complex_dtype_of() {
  return c10::CppTypeToScalarType<c10::complex<T>>::value;
}
/// The tolerance for float64, or the one for float32.
template <typename T>
constexpr double tolerance(double for_double, double for_float) {
  return std::is_same_v<T, double> ? for_double : for_float;
}

/// Equal in dtype, shape and every value.
inline bool same(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && at::equal(a, b);
}

/// Largest absolute difference relative to the largest absolute value of the reference; infinite when shapes differ.
inline double relative_error(const Tensor& value, const Tensor& reference) {
  if (value.sizes() != reference.sizes()) return std::numeric_limits<double>::infinity();
  const auto type = reference.is_complex() ? torch::kComplexDouble : torch::kDouble;
  const auto wanted = reference.detach().to(type);
  const double scale = wanted.abs().max().item<double>();
  return (value.detach().to(type) - wanted).abs().max().item<double>() / (scale > 0 ? scale : 1.0);
}

/// Re <a, b> in float64.
inline double inner_product(const Tensor& a, const Tensor& b) {
  const auto real = [](const Tensor& t) {
    return (t.is_complex() ? at::view_as_real(t.resolve_conj()) : t).to(torch::kDouble).flatten();
  };
  return real(a).dot(real(b)).item<double>();
}

/// |<Ax, y> - <x, A*y>| relative to |Ax| |y|: stable also when the product itself is near zero.
inline double adjoint_error(const Tensor& ax, const Tensor& y, const Tensor& x, const Tensor& aty) {
  const double scale = std::sqrt(inner_product(ax, ax) * inner_product(y, y));
  return std::abs(inner_product(ax, y) - inner_product(x, aty)) / scale;
}

/// The autograd gradient of a scalar function at x.
inline Tensor gradient_of(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
  const auto leaf = x.detach().clone().set_requires_grad(true);
  function(leaf).sum().backward();
  return leaf.grad();
}

/// What a linear operator's backward misses of being its adjoint: |<A x, y> - <x, A* y>| of adjoint_error, A* y being the
/// gradient of <A x', y> at another image x'. It is small only where the operator is linear, too.
inline double backward_adjoint_error(const std::function<Tensor(const Tensor&)>& linear, const Tensor& x, const Tensor& y,
                                     const Tensor& elsewhere) {
  const auto aty = gradient_of([&](const Tensor& image) { return (linear(image) * y).sum(); }, elsewhere);
  return adjoint_error(linear(x), y, x, aty);
}

/// Directional derivative by central differences against <gradient, direction>, relative to |gradient| |direction|;
/// float64 only.
inline double finite_difference_error(const std::function<Tensor(const Tensor&)>& function, const Tensor& x,
                                      const Tensor& direction, double step = 1e-6) {
  const double slope =
      (function(x + step * direction).sum() - function(x - step * direction).sum()).template item<double>() / (2 * step);
  const auto gradient = gradient_of(function, x);
  const double scale = std::sqrt(inner_product(gradient, gradient) * inner_product(direction, direction));
  return std::abs(slope - inner_product(gradient, direction)) / scale;
}

/// The second derivative along a direction of a scalar function at x against central differences of its gradient; float64
/// only.
inline double second_derivative_error(const std::function<Tensor(const Tensor&)>& function, const Tensor& x,
                                      const Tensor& direction, double step = 1e-5) {
  const auto leaf = x.detach().clone().set_requires_grad(true);
  const auto gradient = torch::autograd::grad({function(leaf).sum()}, {leaf}, {}, true, true)[0];
  const auto second = torch::autograd::grad({(gradient * direction).sum()}, {leaf})[0];
  const auto slopes = gradient_of(function, x + step * direction) - gradient_of(function, x - step * direction);
  return relative_error(second, slopes / (2 * step));
}

}  // namespace mpol::testing
