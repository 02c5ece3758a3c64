#pragma once

#include <filesystem>
#include <string>

namespace mpol::cli {

/// SHA-256 of a file's bytes, 64 hexadecimal digits, read in blocks. @throws FileError when it cannot be read
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace mpol::cli
