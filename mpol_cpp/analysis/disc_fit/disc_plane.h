#pragma once

#include <cmath>

#include <mpol_cpp/analysis/disc_fit/sample_sums.h>
#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/core/units.h>

namespace mpol {

/// Radians of phase for each wavelength of a baseline and arcsec on the sky.
inline constexpr double phase_of_arcsec = 2 * units::pi * units::arcsec;

/// A visibility as a source sees it that lies in the middle, no longer East and North of it: V exp(2 pi i (u East + v North)).
struct CenteredVisibility {
  /// @param east, north  of the source, arcsec
  CenteredVisibility(const Sample& sample, double east, double north) {
    const double phase = phase_of_arcsec * (sample.u * east + sample.v * north), c = std::cos(phase), s = std::sin(phase);
    real = sample.real * c - sample.imag * s;
    imag = sample.real * s + sample.imag * c;
  }

  double real, imag;  ///< Jy
};

/// Where a baseline lies in the plane of a disc.
class DiscPlane {
 public:
  explicit DiscPlane(const DiscGeometry& geometry)
      : cosine_(std::cos(geometry.position_angle)),
        sine_(std::sin(geometry.position_angle)),
        foreshortening_(std::cos(geometry.inclination)) {}

  /// Along the disc's minor and major axis, wavelengths.
  struct Place {
    double minor, major;
    double length() const { return std::hypot(minor, major); }  ///< the deprojected baseline
  };
  Place at(double u, double v) const { return {(u * cosine_ - v * sine_) * foreshortening_, u * sine_ + v * cosine_}; }

 private:
  double cosine_, sine_, foreshortening_;
};

}  // namespace mpol
