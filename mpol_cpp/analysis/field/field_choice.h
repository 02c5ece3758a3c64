#pragma once

#include <functional>
#include <optional>
#include <string>

#include <mpol_cpp/analysis/field/wide_image.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/primary_beam.h>
#include <mpol_cpp/visibilities/data_outline.h>
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

/// The primary beam of the antennas that took data.
struct KnownBeam {
  PrimaryBeam beam;  ///< of any frequency
  double frequency;  ///< the lowest of the data, Hz
};

/// The primary beam of the data's antennas, where telescope and frequencies are known.
std::optional<KnownBeam> known_beam(const DataOutline& data, const UvSummary& uv);

/// How far flux may reach at most: to a tenth of the antennas' primary beam where that is known, else twice the scale of the
/// shortest baseline of the array, 2/q_min.
FieldChoice widest_field(const DataOutline& data, const UvSummary& uv);

/// The grid of a wide image, of 256 pixels along an axis: twice the field of `coords`, or the widest field where that is more.
GridCoords look_around(const GridCoords& coords, const DataOutline& data, const UvSummary& uv);

/// What a field is chosen by.
struct FieldView {
  DataOutline data;                                       ///< all of them
  UvSummary uv;                                           ///< their baselines
  std::function<WideMap(const GridCoords& coords)> look;  ///< makes the image of all of them
};
/// That of visibilities, which must outlive it.
FieldView view_of(const Visibilities& visibilities, const UvSummary& uv);

/// The field that holds what the data see: one and a half times the least square that confines the flux in a dirty image of the
/// widest field (confining_half_width), but not less than the scales of 0.6/q_min that the shortest baseline of the array
/// recovers, or than six times the flux where that is less and the source stands out of the noise by 50 times, nor more than the
/// widest field. Where no beam is known and the flux fills the widest field, the look is 4, 8 or 16 times as wide as the scale of
/// the shortest baseline, the first that holds the flux, and takes its place; none does: the widest field.
FieldChoice choose_field(const FieldView& view, FieldPlace place = FieldPlace::phase_center);
/// The same of visibilities.
FieldChoice choose_field(const Visibilities& visibilities, const UvSummary& uv, FieldPlace place = FieldPlace::phase_center);

/// A warning where a field is far too narrow: narrower than the scales that the shortest baseline of the array recovers, and than
/// four fifths of what choose_field() takes; empty else.
std::string field_warning(const Visibilities& visibilities, const UvSummary& uv, const GridCoords& coords);

}  // namespace mpol
