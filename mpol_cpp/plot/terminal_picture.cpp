#include <mpol_cpp/plot/terminal_picture.h>

#include <algorithm>
#include <map>
#include <string_view>

#include <mpol_cpp/core/format.h>

namespace mpol::plot {
namespace {

std::string color_words(int layer, const Rgb& color) {
  return fmt::format("\x1b[{};2;{};{};{}m", layer, color.red, color.green, color.blue);
}

double lightness(const Rgb& color) { return (0.299 * color.red + 0.587 * color.green + 0.114 * color.blue) / 255; }

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// Seven steps of red and green and five of blue: 245 colors that a terminal of 256 has room for.
int color_index(const Rgb& color) {
  return (color.red * 6 + 127) / 255 * 35 + (color.green * 6 + 127) / 255 * 5 + (color.blue * 4 + 127) / 255;
}

/// A row of sixels of one color, runs of four and more shortened.
std::string run_lengths(const std::string& row) {
  std::string text;
  for (std::size_t begin = 0; begin < row.size();) {
    const auto end = std::min(row.find_first_not_of(row[begin], begin), row.size());
    if (end - begin > 3) text += fmt::format("!{}{}", end - begin, row[begin]);
    else text.append(end - begin, row[begin]);
    begin = end;
  }
  return text;
}

}  // namespace

std::string half_blocks(const TerminalPicture& picture) {
  std::string text;
  for (std::int64_t row = 0; row < picture.height; row += 2) {
    for (std::int64_t column = 0; column < picture.width; ++column) {
      text += color_words(38, picture.at(row, column));
      if (row + 1 < picture.height) text += color_words(48, picture.at(row + 1, column));
      text += "▀";
    }
    text += "\x1b[0m\n";
  }
  return text;
}

std::string characters(const TerminalPicture& picture) {
  constexpr std::string_view steps = " .:-=+*#%@";
  std::string text;
  for (std::int64_t row = 0; row < picture.height; row += 2) {
    std::string line;
    for (std::int64_t column = 0; column < picture.width; ++column) {
      const double below = lightness(picture.at(std::min(row + 1, picture.height - 1), column));
      const double light = 0.5 * (lightness(picture.at(row, column)) + below);
      line += steps[static_cast<std::size_t>(std::clamp(light * static_cast<double>(steps.size()), 0.0, steps.size() - 1.0))];
    }
    text += line + "\n";
  }
  return text;
}

std::string sixels(const TerminalPicture& picture) {
  auto text = fmt::format("\x1bPq\"1;1;{};{}", picture.width, picture.height);
  std::map<int, Rgb> used;
  for (const auto& pixel : picture.pixels) used.emplace(color_index(pixel), pixel);
  for (const auto& [index, color] : used)
    text += fmt::format("#{};2;{};{};{}", index, index / 35 * 100 / 6, index / 5 % 7 * 100 / 6, index % 5 * 100 / 4);
  for (std::int64_t top = 0; top < picture.height; top += 6) {
    std::map<int, std::string> rows;
    for (std::int64_t column = 0; column < picture.width; ++column) {
      for (std::int64_t row = top; row < std::min(top + 6, picture.height); ++row) {
        auto& sixel =
            rows.try_emplace(color_index(picture.at(row, column)), static_cast<std::size_t>(picture.width), '?').first->second;
        auto& bits = sixel[static_cast<std::size_t>(column)];
        bits = static_cast<char>(((bits - '?') | 1 << (row - top)) + '?');
      }
    }
    for (const auto& [index, row] : rows) text += fmt::format("#{}{}$", index, run_lengths(row));
    text += "-";
  }
  return text + "\x1b\\\n";
}

std::string kitty_graphics(const TerminalPicture& picture) {
  constexpr std::size_t longest = 4096;
  std::string bytes;
  for (const auto& pixel : picture.pixels) {
    for (const auto part : {pixel.red, pixel.green, pixel.blue}) bytes += static_cast<char>(part);
  }
  const auto letters = base64(bytes);
  std::string text;
  for (std::size_t begin = 0; begin < letters.size(); begin += longest) {
    const auto head = begin == 0 ? fmt::format("a=T,f=24,s={},v={},", picture.width, picture.height) : std::string();
    text += fmt::format("\x1b_G{}m={};{}\x1b\\", head, begin + longest < letters.size() ? 1 : 0, letters.substr(begin, longest));
  }
  return text + "\n";
}

}  // namespace mpol::plot
