#pragma once

#include <optional>
#include <string>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// How wide a part of the sky is imaged, and why.
struct FieldChoice {
  double width = 0;                ///< arcsec
  std::string reason;              ///< which rule decided, in words
  SkyOffset center = {};           ///< its middle
  std::string center_reason = {};  ///< why that is not the phase centre; empty: it is
};

/// What the middle of a field may be.
enum class FieldPlace {
  phase_center,  ///< nothing else
  around_flux,   ///< the middle of the flux, where a field about it is less than two thirds as wide as about the phase centre
};

/// Diameter of a telescope's antennas in metres, from the name that headers have; nothing for an unknown one, or one whose
/// antennas differ. An ALMA whose shortest baseline is below 12 m is that of 7 m antennas.
/// @param shortest  baseline, metres; 0: unknown
std::optional<double> dish_diameter(const std::string& telescope, double shortest);

/// How far flux may reach at most: to a tenth of the antennas' primary beam (1.8 times its FWHM of 1.13 lambda/D) where telescope
/// and frequency are known, else twice the scale of the shortest baseline, 2/q_min.
FieldChoice widest_field(const Visibilities& visibilities, const UvSummary& uv);

/// The grid of a wide image, of 256 pixels along an axis: twice the field of `coords`, or the widest field where that is more.
GridCoords look_around(const GridCoords& coords, const Visibilities& visibilities, const UvSummary& uv);

/// The field that holds what the data see: one and a half times the flux in a dirty image of the widest field, but not less than
/// the scales of 0.6/q_min that the shortest baseline recovers, nor more than the widest field.
FieldChoice choose_field(const Visibilities& visibilities, const UvSummary& uv, FieldPlace place = FieldPlace::phase_center);

}  // namespace mpol
