#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"

#include "pages.h"

using namespace mpol::testing;

namespace {

std::string page(const std::string& name) { return read_text(repository() / "docs" / name); }

/// The part of a page under a heading, up to the next one.
std::string section(const std::string& text, const std::string& heading) {
  const auto begin = text.find("\n## " + heading + "\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find("\n## ", begin + 4) - begin);
}

/// A text without the spaces at its ends.
std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? std::string() : text.substr(begin, end - begin + 1);
}

/// The options of a verb's --help, each with its value, its default and its description: "--npix N: Pixels along …".
std::set<std::string> options_in_help(const std::string& help) {
  constexpr std::size_t column = 20, first = 30;  // where descriptions go on and begin
  std::vector<std::pair<std::string, std::string>> options;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  -")) {
      const bool fills_its_column = line.size() > first && line[first - 1] == ' ' && line[first - 2] != ' ';
      const auto gap = fills_its_column ? first - 1 : std::min(line.find("  ", 2), line.size());
      options.emplace_back(trimmed(line.substr(0, gap)), trimmed(line.substr(gap)));
    } else if (!options.empty() && line.starts_with(std::string(column, ' '))) {
      options.back().second = trimmed(options.back().second + " " + trimmed(line));
    }
  }
  std::set<std::string> set;
  for (const auto& [name, description] : options) set.insert(trimmed(name + ": " + description));
  return set;
}

/// The rows "| `option` | description |" of a section's tables, in the same form.
std::set<std::string> options_in_tables(const std::string& text) {
  std::set<std::string> options;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `-")) continue;
    const auto end_of_name = line.find("` | ");
    const auto row =
        line.substr(3, end_of_name - 3) + ": " + trimmed(line.substr(end_of_name + 4, line.size() - end_of_name - 6));
    options.insert(trimmed(std::regex_replace(row, std::regex("\\\\\\|"), "|")));
  }
  return options;
}

std::string name_of(const std::string& option) {
  return option.substr(option.find("--"), option.find_first_of(" :=", option.find("--")) - option.find("--"));
}

/// The headings of a page as links name them: in lower case, without signs, spaces as hyphens.
std::set<std::string> anchors_of(const std::string& text) {
  std::set<std::string> anchors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    std::string anchor;
    for (const char letter : trimmed(line.substr(line.find_first_not_of('#')))) {
      if (letter == ' ') anchor += '-';
      else if (std::isalnum(static_cast<unsigned char>(letter)) || letter == '-' || letter == '_') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

/// The verbs of the program, as its --help lists them.
std::vector<std::string> verbs() {
  const auto help = run_mpol_here({"--help"}).out;
  std::vector<std::string> names;
  std::istringstream lines(help.substr(help.find("Subcommands:\n") + std::string("Subcommands:\n").size()));
  for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
    if (line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

/// The commands of mpol between back quotes in the text of a page.
std::vector<std::string> commands_in_text(const std::string& text) {
  const std::regex command("`(mpol [a-z][^`]*)`");
  std::vector<std::string> commands;
  std::istringstream lines(text);
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) in_block = !in_block;
    if (in_block) continue;
    for (std::sregex_iterator match(line.begin(), line.end(), command), end; match != end; ++match) {
      commands.push_back((*match)[1]);
    }
  }
  return commands;
}

}  // namespace

TEST_CASE("the page on the command line has every option of every verb, word for word", "[cli][quick]") {
  const auto text = page("command_line.md");
  const auto shared = options_in_tables(section(text, "What every verb that computes understands"));
  REQUIRE(shared.size() == 8);
  auto of_image = options_in_help(run_mpol_here({"image", "--help"}).out);
  const std::set<std::string> of_image_alone = {"--keep-diverged", "--chi2-bound", "--channels-at-once"};
  std::erase_if(of_image, [&](const std::string& option) { return of_image_alone.contains(name_of(option)); });
  CHECK(options_in_help(run_mpol_here({"crossval", "--help"}).out) == of_image);
  CHECK_FALSE(section(text, "mpol crossval").empty());
  const std::set<std::string> says_something_only = {"devices", "show", "completion", "manual"};
  const auto all_verbs = verbs();
  REQUIRE(all_verbs.size() >= 23);
  for (const auto& verb : all_verbs) {
    if (verb == "crossval") continue;  // its section says which of image's options it has
    INFO(verb);
    const auto own = section(text, "mpol " + verb);
    REQUIRE_FALSE(own.empty());
    const auto helped = options_in_help(run_mpol_here({verb, "--help"}).out);
    REQUIRE(helped.size() >= 2);
    CHECK(options_in_tables(own) == helped);
    std::set<std::string> names;
    for (const auto& option : helped) names.insert(name_of(option));
    for (const auto& option : shared) {
      INFO(option);
      if (!says_something_only.contains(verb)) CHECK(names.contains(name_of(option)));
    }
  }
}

TEST_CASE("commands in the text of the pages are of verbs and options that there are", "[cli][quick]") {
  std::map<std::string, std::set<std::string>> options;
  for (const auto& verb : verbs()) {
    for (const auto& option : options_in_help(run_mpol_here({verb, "--help"}).out)) options[verb].insert(name_of(option));
  }
  const std::regex option("--[a-z0-9][a-z0-9-]*");
  int commands = 0;
  for (const auto& file : all_pages()) {
    if (file.filename() == "CHANGELOG.md") continue;  // of older versions, too
    for (const auto& command : commands_in_text(read_text(file))) {
      INFO(file << ": " << command);
      std::string verb;
      std::istringstream(command.substr(5)) >> verb;
      if (verb == "verb") continue;  // as a word for any
      REQUIRE(options.contains(verb));
      for (std::sregex_iterator match(command.begin(), command.end(), option), end; match != end; ++match) {
        INFO(match->str());
        CHECK((options[verb].contains(match->str()) || match->str() == "--help"));
      }
      ++commands;
    }
  }
  CHECK(commands >= 150);
}

TEST_CASE("links of the pages lead to files that are there, and to headings that these have", "[cli][quick]") {
  const std::regex link("\\]\\(([^)# ]*)(#[^) ]*)?\\)");
  int links = 0, pictures = 0;
  for (const auto& file : all_pages()) {
    const auto text = read_text(file);
    for (std::sregex_iterator match(text.begin(), text.end(), link), end; match != end; ++match) {
      const auto path = (*match)[1].str(), heading = (*match)[2].str();
      if (path.find("://") != std::string::npos) continue;
      INFO(file << ": " << match->str());
      const auto target = path.empty() ? file : file.parent_path() / path;
      REQUIRE(std::filesystem::exists(target));
      if (!heading.empty()) CHECK(anchors_of(read_text(target)).contains(heading.substr(1)));
      ++links;
      pictures += path.ends_with(".png") ? 1 : 0;
    }
  }
  CHECK(links > 100);
  CHECK(pictures > 15);
}

TEST_CASE("every page of the documentation is in the list of README, of the guide or of the tutorials", "[cli][quick]") {
  const auto readme = read_text(repository() / "README.md"), guide = page("guide/README.md"),
             tutorials = page("tutorials/README.md");
  for (const auto& file : pages_of("docs")) CHECK(readme.find("(docs/" + file.filename().string() + ")") != std::string::npos);
  for (const auto& file : pages_of("docs/guide")) {
    INFO(file);
    if (file.filename() != "README.md") CHECK(guide.find("(" + file.filename().string() + ")") != std::string::npos);
  }
  for (const auto& file : pages_of("docs/tutorials")) {
    INFO(file);
    if (file.filename() != "README.md") CHECK(tutorials.find("(" + file.filename().string() + ")") != std::string::npos);
  }
  for (const auto& list : {guide, readme}) CHECK(list.find("tutorials/README.md)") != std::string::npos);
}
