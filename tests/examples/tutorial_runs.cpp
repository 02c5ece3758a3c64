#include "tutorial_runs.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "fenced_blocks.h"
#include "python.h"

namespace mpol::testing {
namespace {

namespace fs = std::filesystem;

fs::path folder_of_docs(const std::string& name) { return fs::path(MPOL_DATA_DIR).parent_path() / "docs" / name; }

std::vector<fs::path> pages_but_their_list(const fs::path& folder) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != "README.md") pages.push_back(entry.path());
  }
  std::ranges::sort(pages);
  return pages;
}

std::string run_programs(const std::string& commands, const fs::path& folder) {
  const std::string built = "build/release/bin/";
  std::istringstream lines(commands);
  std::string printed;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(built)) continue;
    printed += run_command("cd '" + folder.string() + "' && '" + MPOL_EXAMPLES + "'/" + line.substr(built.size()));
  }
  return printed;
}

}  // namespace

std::vector<fs::path> tutorial_pages() { return pages_but_their_list(folder_of_docs("tutorials")); }

std::vector<fs::path> guide_pages() { return pages_but_their_list(folder_of_docs("guide")); }

std::string contents_of(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

const TutorialRun& run_of_tutorial(const std::string& page) {
  struct Kept {
    TemporaryFolder folder;
    TutorialRun run;
  };
  static std::map<std::string, std::unique_ptr<Kept>> runs;  // by the commands
  std::vector<std::string> blocks;
  std::string commands;
  for (const auto& block : blocks_of(contents_of(folder_of_docs("tutorials") / (page + ".md")))) {
    if (block.language == "sh") blocks.push_back(block.text), commands += block.text;
  }
  auto& kept = runs[commands];
  if (kept) return kept->run;
  auto fresh = std::make_unique<Kept>();
  fresh->run.folder = fresh->folder.path();
  fs::create_directory_symlink(MPOL_DATA_DIR, fresh->run.folder / "data");
  for (const auto& block : blocks) fresh->run.printed.push_back(run_programs(block, fresh->run.folder));
  kept = std::move(fresh);
  return kept->run;
}

}  // namespace mpol::testing
