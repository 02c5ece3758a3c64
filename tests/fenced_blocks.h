#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace mpol::testing {

/// A fenced block of a page.
struct FencedBlock {
  std::string language;  ///< empty: none is named
  std::string text;      ///< its lines, each with its end
};

/// The blocks between lines that begin with three back quotes.
inline std::vector<FencedBlock> blocks_of(const std::string& page) {
  std::vector<FencedBlock> blocks;
  std::istringstream lines(page);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), ""});
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

/// A text with single spaces in the place of all white space.
inline std::string with_single_spaces(const std::string& text) {
  std::istringstream words(text);
  std::string result;
  for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
  return result;
}

}  // namespace mpol::testing
