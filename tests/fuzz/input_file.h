#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <mpol_cpp/core/error.h>

namespace mpol::testing {

/// The folder in which this process lays its inputs: in memory where the system has such a place. It is removed when the
/// process ends, and stays when it crashes.
const std::filesystem::path& input_folder();

/// Writes the bytes under a name in the input folder.
std::filesystem::path input_file(const std::string& name, const std::uint8_t* bytes, std::size_t size);

/// The bytes of a file.
std::string bytes_of(const std::filesystem::path& path);

/// 0 when `read` reads, 1 when it refuses with one of our errors; what else it throws escapes.
template <typename Read>
int refused(Read&& read) {
  try {
    read();
    return 0;
  } catch (const Error&) {
    return 1;
  }
}

}  // namespace mpol::testing
