#pragma once

#include <string>

namespace mpol {

/// Version of mpol_cpp, "major.minor.patch".
std::string version();

}  // namespace mpol
