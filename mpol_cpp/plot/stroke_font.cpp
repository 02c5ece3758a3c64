#include <mpol_cpp/plot/stroke_font.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace mpol::plot {
namespace {

// A glyph is a list of strokes separated by blanks; a stroke is a list of points, two digits each: x to the right, y up.
// Baseline y = 2, small letters reach 6, capitals 8, descenders 0. A leading ~ rounds the stroke's corners.
const std::map<char32_t, const char*>& glyphs() {
  static const std::map<char32_t, const char*> table = {{U'0', "~280802424828"},
                                                        {U'1', "062822 0242"},
                                                        {U'2', "~0608484502 0242"},
                                                        {U'3', "~0708484525 ~2545420203"},
                                                        {U'4', "32380444"},
                                                        {U'5', "480805 ~0545420203"},
                                                        {U'6', "~4748080242450504"},
                                                        {U'7', "084812"},
                                                        {U'8', "~250508484525 ~250502424525"},
                                                        {U'9', "~0302424808054546"},
                                                        {U'A', "022842 1434"},
                                                        {U'B', "0208 0828 ~28484525 0525 ~25454222 2202"},
                                                        {U'C', "~474808024243"},
                                                        {U'D', "0208 0818 ~18484212 1202"},
                                                        {U'E', "48080242 0535"},
                                                        {U'F', "480802 0535"},
                                                        {U'G', "~474808024245 4525"},
                                                        {U'H', "0208 4248 0545"},
                                                        {U'I', "0208"},
                                                        {U'J', "~38320203"},
                                                        {U'K', "0208 4804 1542"},
                                                        {U'L', "080242"},
                                                        {U'M', "0208254842"},
                                                        {U'N', "02084248"},
                                                        {U'O', "~280802424828"},
                                                        {U'P', "0208 0828 ~28484525 2505"},
                                                        {U'Q', "~280802424828 3342"},
                                                        {U'R', "0208 0828 ~28484525 2505 2542"},
                                                        {U'S', "~4748080545420203"},
                                                        {U'T', "0848 2822"},
                                                        {U'U', "~08024248"},
                                                        {U'V', "082248"},
                                                        {U'W', "0812263248"},
                                                        {U'X', "0248 0842"},
                                                        {U'Y', "082548 2522"},
                                                        {U'Z', "08480242"},
                                                        {U'a', "3632 ~343606023234"},
                                                        {U'b', "0208 ~040636320204"},
                                                        {U'c', "~353606023233"},
                                                        {U'd', "3832 ~343606023234"},
                                                        {U'e', "0434 ~343606023233"},
                                                        {U'f', "~381812 0626"},
                                                        {U'g', "~343606023234 ~36300001"},
                                                        {U'h', "0208 ~04063632"},
                                                        {U'i', "0206 0808"},
                                                        {U'j', "~161000 1818"},
                                                        {U'k', "0208 3604 1532"},
                                                        {U'l', "0208"},
                                                        {U'm', "0206 ~04062622 ~24264642"},
                                                        {U'n', "0206 ~04063632"},
                                                        {U'o', "~160602323616"},
                                                        {U'p', "0006 ~040636320204"},
                                                        {U'q', "3036 ~343606023234"},
                                                        {U'r', "0206 ~040626"},
                                                        {U's', "~3536060434320203"},
                                                        {U't', "~181232 0626"},
                                                        {U'u', "~06023234 3632"},
                                                        {U'v', "062246"},
                                                        {U'w', "0612253246"},
                                                        {U'x', "0236 0632"},
                                                        {U'y', "0622 4610"},
                                                        {U'z', "06360232"},
                                                        {U' ', ""},
                                                        {U'.', "0202"},
                                                        {U',', "1201"},
                                                        {U':', "0202 0505"},
                                                        {U';', "1201 1515"},
                                                        {U'-', "0535"},
                                                        {U'+', "0545 2327"},
                                                        {U'=', "0444 0646"},
                                                        {U'(', "~29080221"},
                                                        {U')', "~09282201"},
                                                        {U'[', "29090121"},
                                                        {U']', "09292101"},
                                                        {U'/', "0148"},
                                                        {U'\\', "0841"},
                                                        {U'%', "0248 0708181707 3233434232"},
                                                        {U'*', "0446 0644 2327"},
                                                        {U'\'', "0907"},
                                                        {U'"', "0907 1917"},
                                                        {U'_', "0141"},
                                                        {U'<', "470543"},
                                                        {U'>', "074503"},
                                                        {U'!', "0804 0202"},
                                                        {U'?', "~070848452524 2222"},
                                                        {U'|', "0109"},
                                                        {U'~', "~04163446"},
                                                        {U'^', "062846"},
                                                        {U'#', "1218 3238 0444 0646"},
                                                        {U'&', "~4208183804021244"},
                                                        {U'@', "~344425243444 ~4448080242"},
                                                        {U'$', "~4748080545420203 2129"},
                                                        {U'{', "29181605141221"},
                                                        {U'}', "09181625141201"},
                                                        {U'`', "0917"},
                                                        {U'″', "0907 1917"},
                                                        {U'′', "0907"},
                                                        {U'°', "~170709292717"},
                                                        {U'×', "0347 0743"},
                                                        {U'−', "0545"},
                                                        {U'±', "0646 2428 0242"},
                                                        {U'·', "0505"},
                                                        {U'…', "0202 2222 4242"},
                                                        {U'λ', "0842 2502"},
                                                        {U'σ', "~160602323616 1646"},
                                                        {U'χ', "0046 0640"},
                                                        {U'µ', "0006 ~06023234 3632"},
                                                        {U'μ', "0006 ~06023234 3632"}};
  return table;
}

constexpr const char* unknown_glyph = "0208484202";
constexpr double gap = 1.7;  // between letters, in the units of the glyph table
constexpr double blank_width = 2.2;
constexpr double capital_height = 6;

/// Superscripts: the digit or sign they raise, 0 for everything else.
char32_t raised_character(char32_t character) {
  if (character == U'²') return U'2';
  if (character == U'³') return U'3';
  if (character == U'¹') return U'1';
  if (character == U'⁻') return U'-';
  if (character == U'⁰' || (character >= U'⁴' && character <= U'⁹')) return U'0' + (character - U'⁰');
  return 0;
}

/// Decodes one UTF-8 character at `position` and steps over it; a malformed byte counts as one unknown character.
char32_t next_character(std::string_view text, std::size_t& position) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const auto first = byte(position);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  if (length == 1 || position + length > text.size()) return static_cast<char32_t>(byte(position++));
  std::uint32_t code = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) code = (code << 6) | (byte(position + i) & 0x3Fu);
  position += length;
  return static_cast<char32_t>(code);
}

/// Cuts the corners of a stroke (Chaikin 1974), keeping its ends.
Stroke rounded(Stroke stroke) {
  for (int pass = 0; pass < 3; ++pass) {
    if (stroke.size() < 3) return stroke;
    Stroke cut = {stroke.front()};
    for (std::size_t i = 0; i + 1 < stroke.size(); ++i) {
      const auto &a = stroke[i], &b = stroke[i + 1];
      if (i > 0) cut.push_back({0.75 * a.x + 0.25 * b.x, 0.75 * a.y + 0.25 * b.y});
      if (i + 2 < stroke.size()) cut.push_back({0.25 * a.x + 0.75 * b.x, 0.25 * a.y + 0.75 * b.y});
    }
    cut.push_back(stroke.back());
    stroke = std::move(cut);
  }
  return stroke;
}

std::vector<Stroke> strokes_of(std::string_view glyph) {
  std::vector<Stroke> strokes;
  std::size_t begin = 0;
  while (begin < glyph.size()) {
    const auto end = std::min(glyph.find(' ', begin), glyph.size());
    auto word = glyph.substr(begin, end - begin);
    begin = end + 1;
    const bool smooth = !word.empty() && word.front() == '~';
    if (smooth) word.remove_prefix(1);
    Stroke stroke;
    for (std::size_t i = 0; i + 1 < word.size(); i += 2)
      stroke.push_back({static_cast<double>(word[i] - '0'), static_cast<double>(word[i + 1] - '0') - 2});
    if (!stroke.empty()) strokes.push_back(smooth ? rounded(std::move(stroke)) : std::move(stroke));
  }
  return strokes;
}

}  // namespace

TextStrokes lay_out(std::string_view text) {
  TextStrokes result;
  double pen = 0;
  for (std::size_t position = 0; position < text.size();) {
    auto character = next_character(text, position);
    const auto raised = raised_character(character);
    if (raised != 0) character = raised;
    const double scale = raised != 0 ? 0.6 : 1.0, lift = raised != 0 ? 3.2 : 0.0;
    const auto found = glyphs().find(character);
    auto strokes = strokes_of(found != glyphs().end() ? found->second : unknown_glyph);
    double width = strokes.empty() ? blank_width : 0.0;
    for (auto& stroke : strokes) {
      for (auto& point : stroke) {
        width = std::max(width, point.x * scale);
        point = {(pen + point.x * scale) / capital_height, (lift + point.y * scale) / capital_height};
      }
      result.strokes.push_back(std::move(stroke));
    }
    pen += width + gap * scale;
  }
  result.width = std::max(0.0, pen - gap) / capital_height;
  return result;
}

}  // namespace mpol::plot
