#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mpol::cli::html {

/// A text as it must stand between tags or in an attribute.
std::string escaped(std::string_view text);

/// A heading of a section and what stands under it, HTML.
std::string section(const std::string& heading, const std::string& content);

/// Two columns, names and values, both texts.
std::string facts(const std::vector<std::pair<std::string, std::string>>& rows);

/// A table with a line of names; texts.
std::string table(const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& rows);

/// The bytes of a PNG file as the address of an image in the page itself.
std::string png_address(std::string_view png);

/// A picture of panels of one size, row by row, that stands in the page once and of which figures show one panel each.
class PanelSheet {
 public:
  /// @param id  within the page  @param columns  of panels; widths and heights in pixels
  PanelSheet(std::string id, int columns, int rows, int panel_width, int panel_height);

  /// Holds the picture; shows nothing.
  std::string definition(std::string_view png) const;
  /// A figure of a panel, counted from 0. @param alternative  what it shows, for who cannot see it
  std::string figure(int panel, const std::string& alternative, const std::string& caption) const;

 private:
  std::string id_;
  int columns_, rows_, width_, height_;
};

/// A whole page, readable on narrow and wide screens, light and dark, and on paper.
std::string page(const std::string& title, const std::string& content);

}  // namespace mpol::cli::html
