#include <mpol_cpp/analysis/radial_fit/fourier_bessel_series.h>

#include <cmath>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/outer.h>

#include <mpol_cpp/analysis/disc_fit/bessel.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr std::int64_t most_terms = 5000;

/// The k-th zero of J0, k from 1: McMahon's expansion, made exact by Newton's method.
double bessel_zero(std::int64_t k) {
  const double b = 8 * (static_cast<double>(k) - 0.25) * units::pi;
  double zero = b / 8 + 1 / b - 124 / (3 * b * b * b);
  constexpr int steps = 3;
  for (int i = 0; i < steps; ++i) zero += ::j0(zero) / ::j1(zero);
  return zero;
}

}  // namespace

FourierBesselSeries::FourierBesselSeries(double radius, std::int64_t count) : radius_(radius) {
  if (!(radius > 0) || !std::isfinite(radius))
    throw ValueError(fmt::format("the radius of a Fourier-Bessel series is {}\"; it must be finite and > 0", radius));
  if (count < 2 || count > most_terms)
    throw ValueError(fmt::format("a Fourier-Bessel series of {} terms; it must have 2 to {}", count, most_terms));
  radii_ = at::empty({count}, torch::kFloat64);
  frequencies_ = at::empty_like(radii_);
  areas_ = at::empty_like(radii_);
  const double last = bessel_zero(count + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const double zero = bessel_zero(i + 1), slope = ::j1(zero) * last;
    radii_.mutable_data_ptr<double>()[i] = radius * zero / last;
    frequencies_.mutable_data_ptr<double>()[i] = zero / (2 * units::pi * radius * units::arcsec);
    areas_.mutable_data_ptr<double>()[i] = 4 * units::pi * radius * radius / (slope * slope);
  }
}

Tensor FourierBesselSeries::transform(const Tensor& q) const {
  const auto turns = at::outer(q.to(torch::kFloat64), radii_ * units::arcsec);
  return bessel_j0(turns.mul_(2 * units::pi)).mul_(areas_);
}

}  // namespace mpol
