#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mpol_cpp/plot/color_map.h>

namespace mpol::plot {

/// A picture for a terminal: rows from the top, of one length.
struct TerminalPicture {
  std::int64_t width = 0, height = 0;
  std::vector<Rgb> pixels;  ///< row by row

  const Rgb& at(std::int64_t row, std::int64_t column) const { return pixels[static_cast<std::size_t>(row * width + column)]; }
};

/// Two pixels in each character: half blocks with 24-bit colors of text and ground.
std::string half_blocks(const TerminalPicture& picture);

/// A character for each two rows, from blank to full by lightness: for output without colors.
std::string characters(const TerminalPicture& picture);

/// Sixels, as the DEC VT340 took them: up to 256 colors, six rows at a time.
std::string sixels(const TerminalPicture& picture);

/// The graphics protocol of kitty: raw colors in base64, 4096 letters at a time.
std::string kitty_graphics(const TerminalPicture& picture);

}  // namespace mpol::plot
