#pragma once

#include <string>

namespace mpol::cli {

/// What `mpol --version --verbose` prints: the versions of all parts, and what was built in or is at hand, a line each.
std::string build_description();

}  // namespace mpol::cli
