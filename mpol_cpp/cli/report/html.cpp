#include <mpol_cpp/cli/report/html.h>

#include <cstdint>
#include <utility>

#include <mpol_cpp/core/format.h>

namespace mpol::cli::html {
namespace {

constexpr const char* style = R"(
:root { color-scheme: light dark; --ink: #1d2126; --paper: #fcfcfb; --faint: #5c6570; --line: #d5d9de; --card: #fff; --alarm: #9a3b00; --alarm-paper: #fff4e8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --paper: #16191d; --faint: #a3adb8; --line: #373e46; --card: #fff; --alarm: #ffb682; --alarm-paper: #33241a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem 1rem 3rem; color: var(--ink); background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; padding-bottom: .2rem; border-bottom: 1px solid var(--line); }
p { margin: .4rem 0; max-width: 48rem; }
.lead { font-size: 1.05rem; }
.alarm { border-left: .3rem solid var(--alarm); background: var(--alarm-paper); padding: .5rem .8rem; margin: .5rem 0; max-width: none; overflow-wrap: anywhere; }
.alarm ul { margin: .2rem 0; padding-left: 1.2rem; }
.calm { border-left: .3rem solid #2b8a57; padding: .3rem .8rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: 1rem; }
figure { margin: 0; break-inside: avoid; }
figure svg, figure img { display: block; width: 100%; height: auto; background: var(--card); border: 1px solid var(--line); border-radius: .3rem; }
figcaption { color: var(--faint); font-size: .9rem; margin-top: .3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .4rem 0; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
.facts th { font-weight: 500; color: var(--faint); white-space: nowrap; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; border: 1px solid var(--line); border-radius: .3rem; padding: .6rem; }
@media print {
  :root { --ink: #000; --paper: #fff; --faint: #444; --line: #bbb; --alarm: #9a3b00; --alarm-paper: #fff; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .figures { grid-template-columns: repeat(3, 1fr); }
  h2 { break-after: avoid; }
}
)";

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string section(const std::string& heading, const std::string& content) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escaped(heading), content);
}

std::string facts(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string text = "<table class=\"facts\">\n";
  for (const auto& [name, value] : rows)
    text += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escaped(name), escaped(value));
  return text + "</table>\n";
}

std::string table(const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<div class=\"wide\"><table>\n<tr>";
  for (const auto& name : names) text += fmt::format("<th scope=\"col\">{}</th>", escaped(name));
  text += "</tr>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (const auto& value : row) text += fmt::format("<td>{}</td>", escaped(value));
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string png_address(std::string_view png) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text = "data:image/png;base64,";
  text.reserve(text.size() + (png.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < png.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < png.size() ? static_cast<unsigned char>(png[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += i + k <= png.size() ? digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

PanelSheet::PanelSheet(std::string id, int columns, int rows, int panel_width, int panel_height)
    : id_(std::move(id)), columns_(columns), rows_(rows), width_(panel_width), height_(panel_height) {}

std::string PanelSheet::definition(std::string_view png) const {
  return fmt::format(
      "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs><image id=\"{}\" width=\"{}\" "
      "height=\"{}\" "
      "href=\"{}\"/></defs></svg>\n",
      id_, columns_ * width_, rows_ * height_, png_address(png));
}

std::string PanelSheet::figure(int panel, const std::string& alternative, const std::string& caption) const {
  return fmt::format(
      "<figure><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><use href=\"#{}\" x=\"{}\" y=\"{}\"/></svg>"
      "<figcaption>{}</figcaption></figure>\n",
      width_, height_, escaped(alternative), id_, -(panel % columns_) * width_, -(panel / columns_) * height_, escaped(caption));
}

std::string page(const std::string& title, const std::string& content) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n{2}</main>\n</body>\n</html>\n",
      escaped(title), style, content);
}

}  // namespace mpol::cli::html
