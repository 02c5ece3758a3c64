#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mpol::plot {

/// A picture of width x height pixels, three bytes (red, green, blue) a pixel, rows from the top.
struct Picture {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

/// The bytes of a PNG file. @throws ValueError when the pixels do not fill the picture
std::string encode_png(const Picture& picture);

/// @throws FileError when the file is missing or is no PNG
Picture read_png(const std::filesystem::path& path);

/// Whether bytes begin like a PNG file and end like a complete one.
bool is_complete_png(std::string_view bytes);

}  // namespace mpol::plot
