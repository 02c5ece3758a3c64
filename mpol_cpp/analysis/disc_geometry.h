#pragma once

namespace mpol {

/// How a flat disc lies on the sky.
struct DiscGeometry {
  double inclination = 0;     ///< radian, 0: face on
  double position_angle = 0;  ///< of the major axis, radian, North through East
  double offset_east = 0;     ///< of the disc's centre from the phase centre, arcsec
  double offset_north = 0;    ///< arcsec
};

}  // namespace mpol
