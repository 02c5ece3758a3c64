#pragma once

#include <filesystem>
#include <memory>

#include <mpol_cpp/io/cfitsio/fits_handle.h>

namespace mpol::io {

/// Unpacks a file of gzip into memory, after it was seen by its own checksums to be whole: cfitsio would ask for as much as the
/// last four bytes of the file say, whatever they are.
/// @return nothing for a file of another kind
/// @throws FileError for a damaged one, and where it takes more than this machine's memory
std::unique_ptr<FitsBuffer> unpack_gzip(const std::filesystem::path& path);

}  // namespace mpol::io
