#include "tutorial_runs.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "python.h"

namespace mpol::testing {
namespace {

namespace fs = std::filesystem;

const fs::path& tutorials() {
  static const fs::path folder = fs::path(MPOL_DATA_DIR).parent_path() / "docs" / "tutorials";
  return folder;
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

std::vector<FencedBlock> blocks_of(const std::string& page) {
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

std::vector<fs::path> tutorial_pages() {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(tutorials())) {
    if (entry.path().filename() != "README.md") pages.push_back(entry.path());
  }
  std::ranges::sort(pages);
  return pages;
}

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
  for (const auto& block : blocks_of(contents_of(tutorials() / (page + ".md")))) {
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
