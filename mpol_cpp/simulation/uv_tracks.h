#pragma once

#include <cstdint>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/simulation/array_configuration.h>

namespace mpol {

using torch::Tensor;

/// When and where to an array looks.
struct TrackOptions {
  /// The declination of the phase centre, radian, within [-pi/2, pi/2].
  TORCH_ARG(double, declination) = -24 * units::degree;
  /// First and last hour angle, radian; the observation is cut into whole integrations.
  TORCH_ARG(double, hour_angle_start) = -15 * units::degree;
  TORCH_ARG(double, hour_angle_end) = 15 * units::degree;  ///< radian
  /// Seconds (of the clock, not sidereal), > 0.
  TORCH_ARG(double, integration_time) = 300;
  /// Integrations whose middle has the source lower than this are left out, radian.
  TORCH_ARG(double, minimum_elevation) = 15 * units::degree;
};

/// Baselines over time, one sample per integration and pair of antennas: times outermost, then pairs (0,1), (0,2), ….
struct UvTracks {
  Tensor uvw;         ///< (nvis, 3) float64, metres: u East, v North, w towards the source
  Tensor hour_angle;  ///< (nvis) float64, radian, at the middle of the integration
  Tensor elevation;   ///< (nvis) float64, radian
};

/// Coordinates of the baselines "first antenna minus second" as the Earth turns:
///
///   u =            sin H X +            cos H Y
///   v = -sin D cos H X + sin D sin H Y + cos D Z
///   w =  cos D cos H X - cos D sin H Y + sin D Z
///
/// with X, Y, Z along the meridian's equator, the East and the pole, X = cos(lat) Up - sin(lat) North, Y = East,
/// Z = sin(lat) Up + cos(lat) North, for hour angle H and declination D.
/// @throws ValueError for options out of range, or when the source is never above the minimum elevation
/// Source: Thompson, Moran & Swenson, Interferometry and Synthesis in Radio Astronomy, section 4.1.
UvTracks uv_tracks(const ArrayConfiguration& array, const TrackOptions& options = {});

/// Elevation of a source of the given declination at an hour angle, all in radian.
double source_elevation(double latitude, double declination, double hour_angle);

}  // namespace mpol
