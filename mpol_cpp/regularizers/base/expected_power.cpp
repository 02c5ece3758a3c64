#include <mpol_cpp/regularizers/base/expected_power.h>

#include <cmath>
#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::losses {
namespace {

/// Exponents of 1/P up to this stay finite with room for 1/(2 pi l^2), |V|^2 and the sum.
double largest_exponent(torch::Dtype dtype) { return dtype == torch::kFloat64 ? 640.0 : 60.0; }

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

}  // namespace mpol::losses
