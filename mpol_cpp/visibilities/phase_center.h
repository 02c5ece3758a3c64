#pragma once

#include <optional>
#include <string>

#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// How far two phase centres are apart on the sky, radian, by the coordinates that both know: without a right ascension, their
/// difference in declination. Nothing when they know none in common.
std::optional<double> phase_centre_distance(const Observation& a, const Observation& b);

/// "RA 180, Dec -30 degrees", "unknown" in the place of what is not known.
std::string phase_centre_text(const Observation& observation);

}  // namespace mpol
