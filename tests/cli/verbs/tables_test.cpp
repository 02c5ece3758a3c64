#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "catch.h"

#include "program.h"

using namespace mpol::testing;

namespace {
namespace name_tables {

const std::filesystem::path root = std::filesystem::path(MPOL_DATA_DIR).parent_path();

/// A row of a page's tables, and the heads of its columns, with the spaces at their ends.
struct Row {
  std::vector<std::string> heads, cells;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|' && line[i - 1] != '\\') {
      cells.push_back(cell);
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

std::vector<Row> rows_of(const std::string& page) {
  std::vector<Row> rows;
  std::vector<std::string> heads;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) heads.clear();
    else if (heads.empty()) heads = cells_of(line);
    else if (line.find_first_not_of("|-: ") != std::string::npos) rows.push_back({heads, cells_of(line)});
  }
  return rows;
}

/// What stands between backquotes.
std::vector<std::string> quoted_in(const std::string& text) {
  std::vector<std::string> quoted;
  for (auto begin = text.find('`'); begin != std::string::npos;) {
    const auto end = text.find('`', begin + 1);
    if (end == std::string::npos) break;
    quoted.push_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('`', end + 1);
  }
  return quoted;
}

std::vector<std::string> parts_of(const std::string& text, const std::string& separators) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_letter(char character) { return std::isalnum(static_cast<unsigned char>(character)) || character == '_'; }

/// The identifiers in a piece of C++.
std::vector<std::string> identifiers_in(const std::string& code) {
  std::vector<std::string> identifiers;
  for (std::size_t begin = 0; begin < code.size();) {
    auto end = begin;
    while (end < code.size() && is_letter(code[end])) ++end;
    if (end > begin && !std::isdigit(static_cast<unsigned char>(code[begin]))) {
      identifiers.push_back(code.substr(begin, end - begin));
    }
    begin = std::max(end, begin + 1);
  }
  return identifiers;
}

// ---- names of MPoL

/// tests/data/mpol_names.txt: module.name or module.Class.name, in parts. Other lines of it are versions.
std::vector<std::vector<std::string>> names_of_mpol() {
  std::vector<std::vector<std::string>> names;
  std::istringstream lines(read_text(std::filesystem::path(MPOL_TEST_DATA_DIR) / "mpol_names.txt"));
  for (std::string line; std::getline(lines, line);) names.push_back(parts_of(line.substr(0, line.find(' ')), "."));
  return names;
}

/// Whether a text is what a pattern says, in which * stands for any letters.
bool fits(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') return fits(pattern.substr(1), text) || (!text.empty() && fits(pattern, text.substr(1)));
  return !text.empty() && pattern.front() == text.front() && fits(pattern.substr(1), text.substr(1));
}

/// Whether the last parts of a name are those of a shorter one, which may have *.
bool is_meant(const std::vector<std::string>& name, const std::vector<std::string>& pattern) {
  return pattern.size() <= name.size() &&
         std::equal(pattern.rbegin(), pattern.rend(), name.rbegin(),
                    [](const std::string& of_pattern, const std::string& of_name) { return fits(of_pattern, of_name); });
}

/// The names in a cell; ".name" belongs to the class or module of the name before it. Arguments are left out.
std::vector<std::string> names_in_cell(const std::string& cell, const std::set<std::string>& classes) {
  std::vector<std::string> names;
  std::string owner;
  for (const auto& quoted : quoted_in(cell)) {
    for (auto name : parts_of(std::regex_replace(quoted, std::regex("\\([^)]*\\)"), ""), " ,")) {
      if (name.empty()) continue;
      if (name.front() == '.') name = owner + name;
      const auto dot = name.rfind('.');
      const bool is_class = classes.contains(dot == std::string::npos ? name : name.substr(dot + 1));
      owner = is_class ? name : name.substr(0, dot == std::string::npos ? 0 : dot);
      names.push_back(name);
    }
  }
  return names;
}

// ---- names of ours

/// What the library and the command line know by name.
class OurNames {
 public:
  OurNames() : page_(read_text(root / "docs" / "command_line.md")) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "mpol_cpp")) {
      if (entry.path().extension() != ".h") continue;
      const auto code = std::regex_replace(read_text(entry.path()), std::regex("//[^\n]*"), "");
      auto& words = headers_.emplace_back();
      for (const auto& word : identifiers_in(code)) words.insert(word);
      words_.insert(words.begin(), words.end());
    }
    std::istringstream lines(page_);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("| `-")) continue;
      for (const auto& word : parts_of(quoted_in(line).front(), " ,=")) {
        if (word.starts_with('-')) options_.insert(word);
      }
    }
  }

  std::size_t headers() const { return headers_.size(); }
  std::size_t options() const { return options_.size(); }

  /// What is wrong with something in backquotes: a command, an option, a file, or C++; empty where nothing is.
  /// @param others  words that need not be ours
  std::string fault_of(const std::string& quoted, const std::set<std::string>& others = {}) const {
    static const std::regex option("(?:^| )(--?[a-z][a-z0-9-]*)"), file("[^ ]*/[^ ]*|\\w+\\.(fits|csv|png|json|toml|npz)");
    if (quoted.starts_with("mpol ") || std::regex_search(quoted, option)) return fault_of_command(quoted, option);
    if (std::regex_match(quoted, file)) return fault_of_file(quoted);
    // Names of LibTorch's are not ours.
    const auto code = std::regex_replace(quoted, std::regex("\\b(torch|at)::(\\w+)"), "");
    for (const auto& word : identifiers_in(code)) {
      if (!words_.contains(word) && !others.contains(word)) return "no header has " + word;
    }
    static const std::regex qualified("(\\w+)::(?=(\\w+))");
    for (std::sregex_iterator match(code.begin(), code.end(), qualified), end; match != end; ++match) {
      const auto scope = (*match)[1].str(), name = (*match)[2].str();
      const bool is_there = std::ranges::any_of(headers_, [&](const auto& words) {
        return words.contains(name) && (words.contains(scope) || words.contains(scope + "Impl"));
      });
      if (!is_there) return "no header has " + scope + " and " + name;
    }
    return {};
  }

 private:
  std::string fault_of_command(const std::string& command, const std::regex& option) const {
    const auto words = parts_of(command, " ");
    if (words.front() == "mpol" && page_.find("\n## mpol " + words.at(1) + "\n") == std::string::npos) {
      return "there is no mpol " + words.at(1);
    }
    for (std::sregex_iterator match(command.begin(), command.end(), option), end; match != end; ++match) {
      if (!options_.contains((*match)[1].str())) return "no verb has " + (*match)[1].str();
    }
    return {};
  }

  std::string fault_of_file(const std::string& name) const {
    const bool is_source = std::filesystem::exists(root / name) || std::filesystem::exists(root / "mpol_cpp" / name);
    const bool is_output = name.find('/') == std::string::npos && page_.find(name) != std::string::npos;
    return is_source || is_output ? "" : "there is no file " + name;
  }

  std::string page_;  // docs/command_line.md
  std::vector<std::set<std::string>> headers_;
  std::set<std::string> words_, options_;
};

}  // namespace name_tables
}  // namespace

TEST_CASE("the table for users of MPoL has every public name of its versions, and no other", "[cli][quick]") {
  using namespace name_tables;
  const auto names = names_of_mpol();
  REQUIRE(names.size() > 400);
  std::set<std::string> classes;
  for (const auto& name : names) {
    if (name.size() > 1 && std::isupper(static_cast<unsigned char>(name[1].front()))) classes.insert(name[1]);
  }
  std::set<std::string> told;
  for (const auto& row : rows_of(read_text(root / "docs" / "from_mpol.md"))) {
    REQUIRE(row.heads.front() == " MPoL ");
    for (const auto& name : names_in_cell(row.cells.front(), classes)) told.insert(name);
  }
  std::set<std::string> meant;  // of those that the page tells
  for (const auto& name : names) {
    bool is_told = false;
    for (const auto& pattern : told) {
      if (!is_meant(name, parts_of(pattern, "."))) continue;
      is_told = true;
      meant.insert(pattern);
    }
    std::string full;
    for (const auto& part : name) full += "." + part;
    INFO(full);
    CHECK(is_told);
  }
  CHECK(told == meant);
  CHECK_FALSE(is_meant({"losses", "nll_gridded"}, {"losses", "nll"}));
  CHECK_FALSE(is_meant({"gridding", "Gridder", "beam"}, {"DirtyImager", "beam"}));
  CHECK(is_meant({"coordinates", "GridCoords", "packed_u_centers_2D"}, {"GridCoords", "packed_*_centers_2D"}));
  CHECK(names_in_cell(" `GridCoords.dl .dm(x)` and `fourier.f`, `.g` ", {"GridCoords"}) ==
        std::vector<std::string>{"GridCoords.dl", "GridCoords.dm", "fourier.f", "fourier.g"});
}

TEST_CASE("names of ours in the tables for users of other programs are in headers and tables of options", "[cli][quick]") {
  using namespace name_tables;
  const OurNames ours;
  REQUIRE(ours.headers() > 200);
  REQUIRE(ours.options() > 100);
  std::set<std::string> of_mpol;
  for (const auto& name : names_of_mpol()) of_mpol.insert(name.back());
  std::size_t looked_at = 0;
  for (const auto* page : {"docs/from_mpol.md", "docs/guide/from_others.md", "docs/guide/from_clean.md"}) {
    for (const auto& row : rows_of(read_text(root / page))) {
      const auto head =
          std::ranges::find_if(row.heads, [](const auto& text) { return text == " mpol_cpp " || text == " here "; });
      REQUIRE(head != row.heads.end());
      REQUIRE(row.cells.size() == row.heads.size());
      const auto column = static_cast<std::size_t>(head - row.heads.begin());
      for (auto i = column; i < row.cells.size(); ++i) {
        for (const auto& quoted : quoted_in(row.cells[i])) {
          const auto fault = ours.fault_of(quoted, i == column ? std::set<std::string>{} : of_mpol);
          INFO(page << ": " << quoted << ": " << fault);
          CHECK(fault.empty());
          ++looked_at;
        }
      }
    }
  }
  CHECK(looked_at > 300);
  for (const auto* wrong :
       {"plot::write_image_figure", "losses::nll::nowhere", "GridCoords::tv_image", "mpol image --no-such-option", "mpol imagine",
        "--tvv", "sparse_coding/no.h", "nowhere.fits", "uv_edges"}) {
    INFO(wrong);
    CHECK_FALSE(ours.fault_of(wrong).empty());
  }
  CHECK(ours.fault_of("uv_edges", of_mpol).empty());
}
