#pragma once

#include <optional>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/units.h>

namespace mpol {

using torch::Tensor;

/// A ring of the disc with a Gaussian profile in radius.
struct DiscRing {
  double radius = 0;      ///< arcsec, in the plane of the disc
  double width = 0.1;     ///< full width at half maximum, arcsec
  double brightness = 1;  ///< peak, relative to the other rings
};

/// A crescent: Gaussian in radius, von Mises in azimuth, on top of the rings.
struct Crescent {
  double radius = 0.68;                         ///< arcsec, in the plane of the disc
  double width = 0.15;                          ///< radial full width at half maximum, arcsec
  double position_angle = 140 * units::degree;  ///< of its middle as seen from the disc's centre, North through East
  double azimuthal_width = 80 * units::degree;  ///< full width at half maximum in the plane of the disc
  double contrast = 1.5;                        ///< peak brightness over that of the brightest ring
};

/// An inclined disc of rings with an off-centre crescent: a sky model with everything an imager can get wrong
/// (orientation, inclination, position angle, offset from the phase centre, flux, sharp and smooth structure).
struct RingedDisc {
  double flux = 0.15;                          ///< total at the reference frequency, Jy
  double reference_frequency = 230e9;          ///< Hz
  double spectral_index = 2.2;                 ///< flux grows with frequency to this power
  double inclination = 35 * units::degree;     ///< 0: face on; below 90 degrees
  double position_angle = 60 * units::degree;  ///< of the major axis, North through East
  double offset_east = 0, offset_north = 0;    ///< of the disc's centre from the phase centre, arcsec
  /// Its rings: radius and width in arcsec, brightness beside one another.
  std::vector<DiscRing> rings = {{0.0, 0.2, 0.5}, {0.36, 0.15, 1.0}, {0.68, 0.17, 0.6}};
  std::optional<Crescent> crescent = Crescent{};  ///< nothing: rings only

  /// Total flux in Jy at a frequency in Hz.
  double flux_at(double frequency) const;
  /// Half the width of the square about the phase centre that holds the disc to seven sigma of its profiles, arcsec.
  double half_width() const;
  /// The smallest standard deviation of any profile as seen on the sky, arcsec.
  double finest_sigma() const;
  /// @throws ValueError for parameters without meaning (negative widths, no flux, …), naming value and limit
  void check() const;
};

/// Brightness of the disc averaged over the pixels of a grid.
/// @param frequencies  Hz, one per channel
/// @param oversample   the average is over oversample x oversample points of each pixel, >= 1
/// @return             (nchan, npix, npix) float64, sky orientation, Jy/arcsec^2. Its flux is the disc's when the grid
///                     is large enough to hold it.
Tensor render(const RingedDisc& disc, const GridCoords& coords, const std::vector<double>& frequencies,
              std::int64_t oversample = 4);

/// A grid on which point samples of the disc have the disc's own Fourier transform to 1e-12 of its flux on baselines up
/// to max_abs_uv (wavelengths): Gaussian profiles are band-limited, and the cells are so small that the first
/// repetition of their transform lies beyond.
/// @throws ValueError when that takes more than 16384 pixels across
GridCoords sampling_grid(const RingedDisc& disc, double max_abs_uv);

}  // namespace mpol
