#pragma once

#include <mpol_cpp/analysis/field/wide_image.h>

namespace mpol {

/// Half the width, arcsec, of the least square about a place that holds the flux of a map, of those from `least` on, each 1.4
/// times as wide as the one before: a short CLEAN within it leaves hardly more outside than inside (1.4 times; twice where it
/// leaves sidelobes above the noise), or at most a quarter of the peak and as much of one sign as of the other, as sidelobes and
/// errors do. What sidelobes hide from a look at the map itself shows there. Half the map where no square does; 0 where nothing
/// in the map exceeds five times the noise: what the weights promise, or where both the scatter within cells and the median say
/// more, the less of them.
/// @param east, north  of the square's centre from the phase centre, arcsec; within the map
/// @param least        arcsec; of less than a pixel of the map: a pixel
double confining_half_width(const WideMap& map, double east, double north, double least);

}  // namespace mpol
