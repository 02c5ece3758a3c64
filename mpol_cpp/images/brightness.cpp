#include <mpol_cpp/images/brightness.h>

#include <cmath>
#include <numbers>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr double boltzmann_jy = 1380.649;  // Jy m^2/K: 1.380649e-23 J/K (exact) over 1e-26 J/m^2

}  // namespace

double beam_area(const Beam& beam) { return units::pi * beam.major * beam.minor / (4 * std::numbers::ln2); }

double jy_per_arcsec2_per_kelvin(double frequency) {
  if (!std::isfinite(frequency) || frequency <= 0) {
    throw ValueError(fmt::format("the frequency is {} Hz; it must be finite and greater than 0", frequency));
  }
  const double inverse_wavelength = frequency / units::speed_of_light;  // 1/m
  return 2 * boltzmann_jy * inverse_wavelength * inverse_wavelength * units::arcsec * units::arcsec;
}

}  // namespace mpol
