#include <mpol_cpp/analysis/disc_fit/disc_models.h>

#include <array>
#include <cmath>
#include <vector>

#include <ATen/ops/empty.h>

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

/// A baseline in the plane of the disc.
struct DiscBaseline {
  double minor, major, q;  // before and after deprojection, wavelengths
};

DiscBaseline in_disc(const DiscGeometry& geometry, double u, double v) {
  const double c = std::cos(geometry.position_angle), s = std::sin(geometry.position_angle);
  const double minor = u * c - v * s, major = u * s + v * c;
  return {minor, major, std::hypot(minor * std::cos(geometry.inclination), major)};
}

c10::complex<double> displacement(const DiscGeometry& geometry, double u, double v) {
  const double phase = -turn * (u * geometry.offset_east + v * geometry.offset_north);
  return {std::cos(phase), std::sin(phase)};
}

std::array<c10::complex<double>, 7> slopes_at(const DiscModel& model, double u, double v) {
  const auto& geometry = model.geometry;
  const auto baseline = in_disc(geometry, u, v);
  const auto shape = shape_value(model.shape, baseline.q, model.size, model.width);
  const auto phase = displacement(geometry, u, v);
  const double c = std::cos(geometry.inclination), s = std::sin(geometry.inclination), q = baseline.q;
  const double q_by_inclination = q > 0 ? -baseline.minor * baseline.minor * c * s / q : 0;
  const double q_by_angle = q > 0 ? baseline.minor * baseline.major * s * s / q : 0;
  const auto flux = model.flux * phase;
  const auto turned = c10::complex<double>(0, -turn) * flux * shape.value;
  return {phase * shape.value,
          flux * shape.by_size,
          flux * shape.by_width,
          flux * (shape.by_q * q_by_inclination),
          flux * (shape.by_q * q_by_angle),
          turned * u,
          turned * v};
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
  const auto us = u.detach().to(torch::kCPU).contiguous(), vs = v.detach().to(torch::kCPU).contiguous();
  const auto values = at::empty(us.sizes(), torch::kComplexDouble);
  auto* value = values.mutable_data_ptr<c10::complex<double>>();
  for (std::int64_t i = 0; i < us.numel(); ++i) {
    const double at_u = us.const_data_ptr<double>()[i], at_v = vs.const_data_ptr<double>()[i];
    const auto shape = shape_value(model.shape, in_disc(model.geometry, at_u, at_v).q, model.size, model.width);
    value[i] = model.flux * shape.value * displacement(model.geometry, at_u, at_v);
  }
  return values.to(u.device());
}

Tensor disc_visibility_slopes(const DiscModel& model, const Tensor& u, const Tensor& v) {
  check_model(model, u, v);
  const auto us = u.detach().to(torch::kCPU).contiguous(), vs = v.detach().to(torch::kCPU).contiguous();
  auto shape = us.sizes().vec();
  shape.insert(shape.begin(), 7);
  const auto slopes = at::empty(shape, torch::kComplexDouble);
  auto* slope = slopes.mutable_data_ptr<c10::complex<double>>();
  for (std::int64_t i = 0; i < us.numel(); ++i) {
    const auto of_sample = slopes_at(model, us.const_data_ptr<double>()[i], vs.const_data_ptr<double>()[i]);
    for (std::size_t k = 0; k < of_sample.size(); ++k) slope[static_cast<std::int64_t>(k) * us.numel() + i] = of_sample[k];
  }
  return slopes.to(u.device());
}

}  // namespace mpol
