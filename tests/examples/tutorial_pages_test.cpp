#include "catch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "fenced_blocks.h"
#include "tutorial_runs.h"

using namespace mpol::testing;

namespace {

namespace fs = std::filesystem;

const fs::path repository = fs::path(MPOL_DATA_DIR).parent_path();

/// The examples that a page links to.
std::vector<std::string> examples_of(const std::string& page) {
  const std::regex link("\\(\\.\\./\\.\\./examples/([a-z_]+)\\.cpp\\)");
  std::vector<std::string> names;
  for (std::sregex_iterator match(page.begin(), page.end(), link), end; match != end; ++match) names.push_back((*match)[1]);
  return names;
}

/// A printed line as words, with its numbers apart; times and how often one is another are left out.
struct PrintedLine {
  std::string words;
  std::vector<double> numbers;
};

PrintedLine printed_line(const std::string& line) {
  const std::regex number("[-+]?[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?");
  PrintedLine result;
  auto rest = line;
  for (std::smatch match; std::regex_search(rest, match, number);) {
    const auto behind = match.suffix().str();
    const bool of_time = behind.starts_with(" s") || behind.starts_with(" ms");
    result.words += match.prefix().str() + "#";
    if (!of_time) result.numbers.push_back(std::stod(match.str()));
    rest = behind;
  }
  result.words = with_single_spaces(result.words + rest);
  return result;
}

/// Whether a program on another machine may have printed this for that: the same words, and numbers that rounding moves.
bool agree(const PrintedLine& a, const PrintedLine& b) {
  if (a.words != b.words || a.numbers.size() != b.numbers.size()) return false;
  return std::ranges::equal(a.numbers, b.numbers, [](double x, double y) {
    return std::abs(x - y) <= std::max(0.1 * std::max(std::abs(x), std::abs(y)), 0.005);
  });
}

}  // namespace

TEST_CASE("the code of each tutorial and page of the guide is that of an example it links to, word for word",
          "[examples][quick]") {
  std::size_t excerpts = 0;
  auto pages = tutorial_pages();
  std::ranges::copy(guide_pages(), std::back_inserter(pages));
  for (const auto& file : pages) {
    const auto page = contents_of(file);
    std::string code;
    for (const auto& name : examples_of(page)) code += with_single_spaces(contents_of(repository / "examples" / (name + ".cpp")));
    for (const auto& block : blocks_of(page)) {
      if (block.language != "cpp") continue;
      INFO(file << "\n" << block.text);
      CHECK(code.find(with_single_spaces(block.text)) != std::string::npos);
      ++excerpts;
    }
  }
  CHECK(excerpts >= 35);
}

TEST_CASE("the tutorials' programs run as they are written, and print what the pages say", "[examples]") {
  std::size_t lines_seen = 0;
  for (const auto& file : tutorial_pages()) {
    const auto& printed = run_of_tutorial(file.stem().string()).printed;
    std::size_t commands = 0;
    for (const auto& block : blocks_of(contents_of(file))) {
      if (block.language == "sh") ++commands;
      if (block.language != "text") continue;
      INFO(file);
      REQUIRE(commands > 0);
      std::istringstream expected(block.text), given(printed[commands - 1]);
      for (std::string line, candidate; std::getline(expected, line); ++lines_seen) {
        INFO(line << "\nis not in its place of\n" << printed[commands - 1]);
        bool found = false;
        while (!found && std::getline(given, candidate)) found = agree(printed_line(line), printed_line(candidate));
        CHECK(found);
      }
    }
  }
  CHECK(lines_seen >= 35);
}
