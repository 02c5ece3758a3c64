#pragma once

#include <string>

#include <mpol_cpp/cli/output/points_table.h>

namespace mpol::cli {

/// What report.html says of the point sources of --points.
std::string points_section(const FittedPoints& points);

}  // namespace mpol::cli
