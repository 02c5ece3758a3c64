#pragma once

#include <string>

#include <mpol_cpp/cli/output/blocks_table.h>

namespace mpol::cli {

/// What report.html says of the gains of --fit-blocks.
std::string blocks_section(const CalibratedBlocks& blocks);

}  // namespace mpol::cli
