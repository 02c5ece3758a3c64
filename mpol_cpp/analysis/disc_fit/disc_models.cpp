#include <mpol_cpp/analysis/disc_fit/disc_models.h>

#include <cmath>

#include <ATen/ops/exp.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/analysis/disc_fit/bessel.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr double turn = 2 * units::pi * units::arcsec;  // z = turn q size

/// exp(-2 pi^2 sigma^2 q^2) of a full width at half maximum; by_size is by that width.
ShapeValue gaussian_value(double q, double fwhm) {
  constexpr double factor = 0.5 * turn * turn / (units::fwhm_per_sigma * units::fwhm_per_sigma);
  const double value = std::exp(-factor * fwhm * fwhm * q * q);
  return {.value = value, .by_q = -2 * factor * fwhm * fwhm * q * value, .by_size = -2 * factor * fwhm * q * q * value};
}

ShapeValue ring_value(double q, double radius) {
  const double z = turn * q * radius, slope = -::j1(z);
  return {.value = ::j0(z), .by_q = slope * turn * radius, .by_size = slope * turn * q};
}

/// 2 J1(z)/z and its derivative -2 J2(z)/z.
ShapeValue uniform_value(double q, double radius) {
  constexpr double tiny = 1e-8;  // below it 1 - z^2/8 is 1
  const double z = turn * q * radius;
  if (std::abs(z) < tiny) return {};
  const double slope = -2 * ::jn(2, z) / z;
  return {.value = 2 * ::j1(z) / z, .by_q = slope * turn * radius, .by_size = slope * turn * q};
}

ShapeValue broad_ring_value(double q, double radius, double width) {
  const auto ring = ring_value(q, radius), blur = gaussian_value(q, width);
  return {.value = ring.value * blur.value,
          .by_q = ring.by_q * blur.value + ring.value * blur.by_q,
          .by_size = ring.by_size * blur.value,
          .by_width = ring.value * blur.by_size};
}

void check_model(const DiscModel& model, const Tensor& u, const Tensor& v) {
  if (u.sizes() != v.sizes() || u.scalar_type() != torch::kFloat64 || v.scalar_type() != torch::kFloat64) {
    throw ShapeError(
        fmt::format("u and v have shapes {} and {}; they must be float64 of one shape", u.sizes().vec(), v.sizes().vec()));
  }
  if (!std::isfinite(model.flux) || !(model.size >= 0) || !(model.width >= 0) || std::isinf(model.size + model.width)) {
    throw ValueError(fmt::format("the model has flux {}, size {}, width {}; they must be finite, sizes and widths at least 0",
                                 model.flux, model.size, model.width));
  }
}

/// ShapeValue of many baselines, on their device.
struct ShapeTensors {
  Tensor value, by_q, by_size, by_width;
};

ShapeTensors constant_shape(const Tensor& q) {
  const auto zero = at::zeros_like(q);
  return {at::ones_like(q), zero, zero, zero};
}

ShapeTensors gaussian_shape(const Tensor& q, double fwhm) {
  constexpr double factor = 0.5 * turn * turn / (units::fwhm_per_sigma * units::fwhm_per_sigma);
  const auto value = at::exp(q.square() * (-factor * fwhm * fwhm)), slope = value * q * (-2 * factor * fwhm);
  return {value, slope * fwhm, slope * q, at::zeros_like(q)};
}

ShapeTensors ring_shape(const Tensor& q, double radius) {
  const auto z = q * (turn * radius), slope = -bessel_j1(z);
  return {bessel_j0(z), slope * (turn * radius), slope * q * turn, at::zeros_like(q)};
}

ShapeTensors uniform_shape(const Tensor& q, double radius) {
  constexpr double small = 0.05;  // below it the series of J1(z)/z and J2(z)/z, whose next terms are below 1e-12 of the first
  const auto z = q * (turn * radius), squares = z.square();
  const auto is_small = z.abs() < small, safe = at::where(is_small, at::ones_like(z), z);
  const auto ratio = bessel_j1(safe) / safe;  // J1/z, and J2 = 2 J1/z - J0
  const auto value = at::where(is_small, 1 - squares / 8 * (1 - squares / 24 * (1 - squares / 48)), 2 * ratio);
  const auto slope =
      at::where(is_small, z / -4 * (1 - squares / 12 * (1 - squares / 32)), -2 * (2 * ratio - bessel_j0(safe)) / safe);
  return {value, slope * (turn * radius), slope * q * turn, at::zeros_like(q)};
}

ShapeTensors broad_ring_shape(const Tensor& q, double radius, double width) {
  const auto ring = ring_shape(q, radius), blur = gaussian_shape(q, width);
  return {ring.value * blur.value, ring.by_q * blur.value + ring.value * blur.by_q, ring.by_size * blur.value,
          ring.value * blur.by_size};
}

ShapeTensors shape_at(const DiscModel& model, const Tensor& q) {
  switch (model.shape) {
    case DiscShape::gaussian:
      return gaussian_shape(q, model.size);
    case DiscShape::ring:
      return ring_shape(q, model.size);
    case DiscShape::broad_ring:
      return broad_ring_shape(q, model.size, model.width);
    case DiscShape::disc:
      return uniform_shape(q, model.size);
    case DiscShape::point:
      break;
  }
  return constant_shape(q);
}

/// Baselines in the plane of the disc: along its minor axis before deprojection, along its major axis, and their length after it.
struct DiscBaselines {
  Tensor minor, major, q;  // wavelengths
};

DiscBaselines in_disc(const DiscGeometry& geometry, const Tensor& u, const Tensor& v) {
  const double c = std::cos(geometry.position_angle), s = std::sin(geometry.position_angle);
  const auto minor = u * c - v * s, major = u * s + v * c;
  return {minor, major, at::hypot(minor * std::cos(geometry.inclination), major)};
}

Tensor displacement(const DiscGeometry& geometry, const Tensor& u, const Tensor& v) {
  const auto phase = (u * geometry.offset_east + v * geometry.offset_north) * -turn;
  return at::polar(at::ones_like(phase), phase);
}

}  // namespace

ShapeValue shape_value(DiscShape shape, double q, double size, double width) {
  switch (shape) {
    case DiscShape::gaussian:
      return gaussian_value(q, size);
    case DiscShape::ring:
      return ring_value(q, size);
    case DiscShape::broad_ring:
      return broad_ring_value(q, size, width);
    case DiscShape::disc:
      return uniform_value(q, size);
    case DiscShape::point:
      break;
  }
  return {};
}

Tensor disc_visibilities(const DiscModel& model, const Tensor& u, const Tensor& v) {
  check_model(model, u, v);
  const auto shape = shape_at(model, in_disc(model.geometry, u, v).q);
  return shape.value * model.flux * displacement(model.geometry, u, v);
}

Tensor disc_visibility_slopes(const DiscModel& model, const Tensor& u, const Tensor& v) {
  check_model(model, u, v);
  const auto& geometry = model.geometry;
  const auto baselines = in_disc(geometry, u, v);
  const auto shape = shape_at(model, baselines.q);
  const auto phase = displacement(geometry, u, v);
  const double c = std::cos(geometry.inclination), s = std::sin(geometry.inclination);
  // Where q is zero so are its derivatives.
  const auto per_q = at::where(baselines.q > 0, baselines.q.reciprocal(), 0);
  const auto q_by_inclination = baselines.minor.square() * per_q * (-c * s);
  const auto q_by_angle = baselines.minor * baselines.major * per_q * (s * s);
  const auto flux = phase * model.flux;
  const auto turned = flux * shape.value * c10::complex<double>(0, -turn);
  return at::stack({phase * shape.value, flux * shape.by_size, flux * shape.by_width, flux * (shape.by_q * q_by_inclination),
                    flux * (shape.by_q * q_by_angle), turned * u, turned * v});
}

}  // namespace mpol
