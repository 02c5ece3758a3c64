#pragma once

#include <numbers>

/// Units of the library: arcsec on the sky, radian inside transforms, wavelengths for u and v, Jy, Hz.
namespace mpol::units {

inline constexpr double pi = std::numbers::pi;  ///< half a turn, in radian
/// One arcsecond in radian.
inline constexpr double arcsec = pi / 648000.0;
/// One degree in radian.
inline constexpr double degree = pi / 180.0;
/// Speed of light in vacuum, m/s (exact).
inline constexpr double speed_of_light = 299792458.0;
/// FWHM of a Gaussian in units of its standard deviation, 2 sqrt(2 ln 2).
inline constexpr double fwhm_per_sigma = 2.3548200450309493;

/// Baseline length in wavelengths of a length in metres at a frequency in Hz.
constexpr double metres_to_lambda(double metres, double frequency) { return metres * frequency / speed_of_light; }

}  // namespace mpol::units
