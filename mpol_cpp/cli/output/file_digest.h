#pragma once

#include <filesystem>
#include <string>

namespace mpol::cli {

/// Checks that there is a file, or a folder that holds data. @throws FileError when it cannot be read
void check_readable(const std::filesystem::path& path);

/// SHA-256 of a file's bytes, 64 hexadecimal digits, read in blocks. Of a measurement set, the digest of those of all its files
/// but locks, with their names, in the order of these. @throws FileError when it cannot be read
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace mpol::cli
