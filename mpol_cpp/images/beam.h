#pragma once

namespace mpol {

/// An elliptical Gaussian beam: what images are convolved with, what FITS headers carry, what figures draw.
struct Beam {
  double major = 0;           ///< full width at half maximum along the major axis, arcsec
  double minor = 0;           ///< full width at half maximum along the minor axis, arcsec
  double position_angle = 0;  ///< of the major axis, radian, North through East

  bool operator==(const Beam&) const = default;  ///< the same numbers
};

}  // namespace mpol
