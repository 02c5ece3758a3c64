#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>

namespace mpol::cli {

/// A source whose flux is measured, and what the command line calls it.
struct NamedSource {
  std::string name;
  DiscModel model;
};

/// The sources of --sources, such as "point; gaussian:0.5,35,60,0.1,-0.05": a shape, its sizes (arcsec), then inclination and
/// position angle (degrees), then how far it lies to the East and North of the phase centre (arcsec); what is left out at the
/// end is 0. A point has the place alone.
/// @throws UsageError for another shape, a number that cannot be, or too many or too few of them
std::vector<NamedSource> parse_sources(const std::string& text);

}  // namespace mpol::cli
