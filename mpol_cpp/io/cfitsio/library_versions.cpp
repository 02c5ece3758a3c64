#include <mpol_cpp/io/cfitsio/library_versions.h>

#include <fitsio.h>
#include <zlib.h>

#include <mpol_cpp/core/format.h>

namespace mpol::io {

std::string version_of_cfitsio() {
#ifdef CFITSIO_MICRO
  return fmt::format("{}.{}.{}", CFITSIO_MAJOR, CFITSIO_MINOR, CFITSIO_MICRO);
#else
  return fmt::format("{}.{}", CFITSIO_MAJOR, CFITSIO_MINOR);
#endif
}

std::string version_of_zlib() { return zlibVersion(); }

}  // namespace mpol::io
