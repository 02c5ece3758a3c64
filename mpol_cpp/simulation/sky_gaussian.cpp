#include <mpol_cpp/simulation/sky_gaussian.h>

#include <cmath>

#include <ATen/ops/exp.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/units.h>

namespace mpol {

double SkyGaussian::flux() const { return 2 * units::pi * peak * sigma_minor * sigma_major; }

Tensor SkyGaussian::brightness(const Tensor& east, const Tensor& north) const {
  const double c = std::cos(position_angle), s = std::sin(position_angle);
  const auto x = east - offset_east, y = north - offset_north;
  const auto along_minor = (x * c - y * s) / sigma_minor, along_major = (x * s + y * c) / sigma_major;
  return peak * at::exp(-0.5 * (along_minor.square() + along_major.square()));
}

Tensor SkyGaussian::visibility(const Tensor& u, const Tensor& v) const {
  const double c = std::cos(position_angle), s = std::sin(position_angle);
  const auto along_minor = (u * c - v * s) * (sigma_minor * units::arcsec);
  const auto along_major = (u * s + v * c) * (sigma_major * units::arcsec);
  const auto amplitude = flux() * at::exp(-2 * units::pi * units::pi * (along_minor.square() + along_major.square()));
  const auto phase = (-2 * units::pi * units::arcsec) * (u * offset_east + v * offset_north);
  // at::polar wants amplitudes that are not negative; a Gaussian in absorption has a negative flux.
  return flux() < 0 ? -at::polar(-amplitude, phase) : at::polar(amplitude, phase);
}

}  // namespace mpol
