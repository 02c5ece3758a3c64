#include <mpol_cpp/core/version.h>

namespace mpol {

std::string version() { return MPOL_VERSION; }

}  // namespace mpol
