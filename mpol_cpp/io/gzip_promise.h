#pragma once

#include <filesystem>

namespace mpol::io {

/// Of a file packed by gzip: tests what its last bytes promise of its size by unpacking it, piece by piece, where the promise is
/// more than ten times the file; readers ask for that much memory at once. Other files pass.
/// @throws FileError when it does not unpack to that
void check_gzip_promise(const std::filesystem::path& path);

}  // namespace mpol::io
