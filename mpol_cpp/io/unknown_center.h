#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::io {

/// The HISTORY line of an image whose phase centre is not wholly known, which says what CRVAL does not mean; empty where it is.
std::string unknown_center_line(const Observation& observation);

/// Takes back what a header says of the phase centre where its HISTORY has such a line, and where both coordinates are 0,
/// which programs write that know of none.
void forget_unknown_center(Observation& observation, const std::vector<std::string>& history);

}  // namespace mpol::io
