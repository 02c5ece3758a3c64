#pragma once

#include <optional>
#include <string>

#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// How far two phase centres are apart on the sky, radian, by the coordinates that both know: without a right ascension, their
/// difference in declination. Nothing when they know none in common.
std::optional<double> phase_center_distance(const Observation& a, const Observation& b);

/// "RA 180, Dec -30 degrees", "unknown" in the place of what is not known.
std::string phase_center_text(const Observation& observation);

/// The same data with their phases turned so that images of them are about the point (east, north), arcsec from where they were
/// about before: V exp(+2 pi i (u l + v m)), in their dtype. Their observation keeps its phase centre and says where images of
/// them lie (Observation::center), so that pixels of their FITS files keep their place on the sky.
/// @param room  for the data
Visibilities with_center(const Visibilities& visibilities, double east, double north, const ArrayRoom& room = {});

/// "1.50\" East and 0.20\" South"; below 0.1 arcsec with two digits of the larger.
std::string offset_text(const SkyOffset& offset);

}  // namespace mpol
