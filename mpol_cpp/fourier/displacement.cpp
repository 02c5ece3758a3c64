#include <mpol_cpp/fourier/displacement.h>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {

Tensor displacement_phase(const Tensor& u, const Tensor& v, const Tensor& shift) {
  if (shift.sizes() != at::IntArrayRef{2}) {
    throw ShapeError(fmt::format("the shift has shape {}; it must be (2): East and North", shift.sizes().vec()));
  }
  if (u.sizes() != v.sizes()) {
    throw ShapeError(fmt::format("u has shape {} and v {}; they must be the same", u.sizes().vec(), v.sizes().vec()));
  }
  const auto radian = shift.to(torch::kFloat64) * (-2 * units::pi * units::arcsec);
  const auto angle = u * radian.select(0, 0) + v * radian.select(0, 1);
  return at::polar(at::ones_like(angle), angle);
}

}  // namespace mpol
