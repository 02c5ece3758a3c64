#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "catch.h"

#include "program.h"

using namespace mpol::testing;

namespace {

const std::filesystem::path repository = std::filesystem::path(MPOL_DATA_DIR).parent_path();

std::string page(const std::string& name) { return read_text(repository / "docs" / name); }

/// The part of a page under a heading, up to the next one.
std::string section(const std::string& text, const std::string& heading) {
  const auto begin = text.find("\n## " + heading + "\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find("\n## ", begin + 4) - begin);
}

/// Long options that begin a line of `--help`, or a row of a table.
std::set<std::string> options_in(const std::string& text, const std::string& line_begin) {
  std::set<std::string> names;
  const std::regex option("(?:^|\n)" + line_begin + "(?:-[a-z],)?(--[a-z-]+)");
  for (std::sregex_iterator match(text.begin(), text.end(), option), end; match != end; ++match) names.insert((*match)[1]);
  return names;
}

/// The lines of a page's blocks of shell commands.
std::vector<std::string> commands_of(const std::string& text) {
  std::vector<std::string> commands;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) inside = line == "```sh";
    else if (inside) commands.push_back(line);
  }
  return commands;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

TEST_CASE("the page on the command line names every option, and none that is not there", "[cli]") {
  const auto text = page("command_line.md");
  const std::set<std::string> shared = {"--help",    "--out",   "--overwrite", "--config",
                                        "--threads", "--quiet", "--verbose",   "--json"};
  for (const auto* verb : {"image", "dirty", "inspect", "weights", "profile", "deproject", "convolve", "compare", "plot",
                           "predict", "simulate", "devices"}) {
    INFO(verb);
    auto helped = options_in(run_mpol_here({verb, "--help"}).out, "  ");
    auto told = options_in(section(text, std::string("mpol ") + verb), "\\| `");
    REQUIRE_FALSE(section(text, std::string("mpol ") + verb).empty());
    for (const auto& name : shared) {
      helped.erase(name);
      told.erase(name);
    }
    CHECK(told == helped);
  }
}

TEST_CASE("the tutorial's commands run as they are written, and its pictures are there", "[cli]") {
  const Scratch scratch;
  std::filesystem::create_directory_symlink(repository / "data", scratch / "data");
  const auto text = page("tutorial.md");
  const auto commands = commands_of(text);
  REQUIRE(commands.size() > 10);
  for (const auto& command : commands) {
    INFO(command);
    auto arguments = words_of(command);
    REQUIRE(arguments.front() == "mpol");
    arguments.erase(arguments.begin());
    const auto run = run_mpol(arguments, {.folder = scratch.path()});
    INFO(run.err);
    CHECK(run.exit_code == 0);
  }
  for (const auto* made :
       {"visibilities.png", "weights/residuals.png", "dirty/dirty.fits", "disc/image.fits", "residual.png", "truth.png",
        "restored/convolved.fits", "rings/profile.csv", "vis_profile/profile.png", "face_on/deprojected.fits", "folds.png"}) {
    INFO(made);
    CHECK(std::filesystem::exists(scratch / made));
  }
  const std::regex picture("\\]\\((images/[a-z_]+\\.png)\\)");
  int pictures = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), picture), end; match != end; ++match, ++pictures) {
    CHECK(std::filesystem::exists(repository / "docs" / (*match)[1].str()));
  }
  CHECK(pictures >= 4);
}
