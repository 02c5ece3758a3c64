#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

using torch::Tensor;

/// A line of a thin disc in Keplerian rotation, as a cube of channels.
///
/// With r the distance from the star in the plane of the disc and phi the azimuth there, from the red-shifted end of the major
/// axis:
///
///   v(r, phi) = systemic_velocity + sqrt(G mass / (r distance)) sin(inclination) cos(phi)
///   I(v') = A r^-brightness_index times a Gaussian in v' - v, for inner_radius <= r <= outer_radius, else 0
///
/// A follows from the flux. Which side is near makes no difference: the disc is thin and transparent, or opaque and flat.
struct KeplerianDisc {
  double mass = 1;                           ///< of the star, solar masses
  double distance = 140;                     ///< pc
  double inclination = 0;                    ///< radian, 0: face on; below 90 degrees
  double position_angle = 0;                 ///< of the red-shifted end of the major axis, radian, North through East
  double offset_east = 0, offset_north = 0;  ///< of the star from the phase centre, arcsec
  double systemic_velocity = 0;              ///< km/s
  double inner_radius = 0.1;                 ///< arcsec, > 0: velocities grow without limit towards the star
  double outer_radius = 1;                   ///< arcsec
  double brightness_index = 0.5;             ///< of the velocity-integrated brightness, which falls as r^-index
  double line_width = 0.5;                   ///< full width at half maximum at one point of the disc, km/s
  double flux = 1;                           ///< integrated over the disc and the line, Jy km/s

  /// Speed of rotation at a distance from the star in arcsec, km/s: 29.785 sqrt(mass / (radius distance)).
  double velocity_at(double radius) const;
  /// Velocities from the systemic one beyond which there is less than 1e-4 of a line, km/s: that at the inner radius along
  /// the line of sight and 2.2 line widths.
  double velocity_extent() const;
  /// Half the width of the square about the phase centre that holds the disc, arcsec.
  double half_width() const;
  /// @throws ValueError for parameters without meaning, naming value and limit
  void check() const;
};

/// Brightness of the line averaged over pixels and over channels, so that the flux density summed over channels that hold the
/// line, times their width, is the disc's flux (to the sampling of its edges by the pixels).
/// @param velocities     of the middles of the channels, km/s
/// @param channel_width  km/s, > 0
/// @param oversample     the average is over oversample x oversample points of each pixel, >= 1
/// @return               (nchan, npix, npix) float64, sky orientation, Jy/arcsec^2
/// @throws ValueError for parameters or a grid without meaning
Tensor render(const KeplerianDisc& disc, const GridCoords& coords, const std::vector<double>& velocities, double channel_width,
              std::int64_t oversample = 4);

/// Channels that a line takes in line_channels(): an odd number, as few as hold it.
/// @throws ValueError as line_channels
std::int64_t line_width_in_channels(const KeplerianDisc& disc, double channel_spacing, double rest_frequency);

/// The line as channels of an observation have it: an odd number of them about the systemic velocity, as few as hold the line
/// (velocity_extent), in the observation's order. What a matched filter looks for.
/// @param channel_spacing  of the observation, Hz, negative where its frequencies decrease
/// @param rest_frequency   of the line, Hz, > 0: velocities are those of the radio convention, c (1 - frequency / rest_frequency)
/// @throws ValueError as render, and for a spacing or frequency without meaning
Tensor line_channels(const KeplerianDisc& disc, const GridCoords& coords, double channel_spacing, double rest_frequency,
                     std::int64_t oversample = 4);

}  // namespace mpol
