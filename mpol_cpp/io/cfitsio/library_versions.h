#pragma once

#include <string>

namespace mpol::io {

/// The version of cfitsio that this build was made with, "4.2.0".
std::string version_of_cfitsio();
/// The version of zlib that is loaded.
std::string version_of_zlib();

}  // namespace mpol::io
