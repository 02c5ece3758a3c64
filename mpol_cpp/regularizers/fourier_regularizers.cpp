#include <mpol_cpp/regularizers/fourier_regularizers.h>

#include <cmath>

#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/losses/sums.h>

namespace mpol::losses {
namespace {

/// Exponents of 1/P up to this stay finite with room for 1/(2 pi l^2), |V|^2 and the sum.
double largest_exponent(torch::Dtype dtype) { return dtype == torch::kFloat64 ? 640.0 : 60.0; }

void check_cube(const Tensor& cube) {
  if (cube.dim() < 3 || !cube.is_complex()) {
    throw ShapeError(
        fmt::format("the visibilities have shape {}; they must be complex, (…, nchan, npix, npix)", cube.sizes().vec()));
  }
}

}  // namespace

Tensor inverse_expected_power(const GridCoords& coords, double length_scale, torch::Dtype dtype) {
  if (!(length_scale > 0) || !std::isfinite(length_scale)) {
    throw ValueError(fmt::format("length_scale is {} arcsec; it must be finite and greater than 0", length_scale));
  }
  const double l = length_scale * units::arcsec;
  const auto q = coords.packed_q();
  const double exponent_scale = 2.0 * units::pi * units::pi * std::pow(q.max().item<double>(), 2);
  const auto largest = [&](torch::Dtype of) { return std::sqrt(largest_exponent(of) / exponent_scale) / units::arcsec; };
  if (length_scale > largest(dtype)) {
    const auto remedy = dtype == torch::kFloat64
                            ? std::string("use a shorter one")
                            : fmt::format("use a shorter one, or float64 up to {:.4g}", largest(torch::kFloat64));
    throw ValueError(fmt::format("length_scale is {} arcsec; on this grid the psd prior overflows beyond {:.4g} arcsec in {}; {}",
                                 length_scale, largest(dtype), c10::toString(dtype), remedy));
  }
  return (q.square() * (2.0 * units::pi * units::pi * l * l)).exp() / (2.0 * units::pi * l * l);
}

Tensor psd(const Tensor& packed_visibilities, const Tensor& inverse_power) {
  check_cube(packed_visibilities);
  return detail::sum_cube(at::view_as_real(packed_visibilities).square().sum({-1}) * inverse_power);
}

Tensor psd(const Tensor& packed_visibilities, const GridCoords& coords, double length_scale) {
  const auto options = packed_visibilities.options().dtype(c10::toRealValueType(packed_visibilities.scalar_type()));
  const auto inverse_power = inverse_expected_power(coords, length_scale, c10::typeMetaToScalarType(options.dtype()));
  return psd(packed_visibilities, inverse_power.to(options));
}

Tensor uv_sparsity(const Tensor& packed_visibilities, const GridCoords& coords, double q_max) {
  check_cube(packed_visibilities);
  if (!(q_max >= 0)) throw ValueError(fmt::format("q_max is {} lambda; it must be at least 0", q_max));
  const auto beyond = (coords.packed_q() > q_max).to(packed_visibilities.device());
  return detail::sum_cube(at::view_as_real(packed_visibilities).abs().sum({-1}) * beyond);
}

}  // namespace mpol::losses
