#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace mpol::testing {

/// A picture of width x height pixels, three bytes (red, green, blue) a pixel, rows from the top.
struct Picture {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

/// @throws std::runtime_error when the file is missing or is no PNG
Picture read_png(const std::filesystem::path& path);

}  // namespace mpol::testing
