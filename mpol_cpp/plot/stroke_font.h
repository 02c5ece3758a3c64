#pragma once

#include <string_view>
#include <vector>

namespace mpol::plot {

/// A point of a glyph; x to the right, y up, in units of the height of a capital letter.
struct GlyphPoint {
  double x, y;
};
using Stroke = std::vector<GlyphPoint>;

/// Text as pen strokes, its baseline at y = 0, starting at x = 0.
struct TextStrokes {
  std::vector<Stroke> strokes;
  double width = 0;
};

/// Lays out UTF-8 text in the library's own line font: ASCII, the superscripts ⁰…⁹ ⁻, and ″ ′ ° × − · λ σ χ µ.
/// What the font does not have becomes an empty box.
TextStrokes lay_out(std::string_view text);

}  // namespace mpol::plot
