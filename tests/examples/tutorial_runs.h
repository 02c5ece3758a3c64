#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mpol::testing {

/// The pages of docs/tutorials but their list.
std::vector<std::filesystem::path> tutorial_pages();

/// The pages of docs/guide but their list.
std::vector<std::filesystem::path> guide_pages();

std::string contents_of(const std::filesystem::path& file);

/// What a tutorial's commands left and printed.
struct TutorialRun {
  std::filesystem::path folder;      ///< where they ran; it holds `data`
  std::vector<std::string> printed;  ///< by each of the page's blocks of commands
};

/// Runs the programs among a page's shell commands, once for all tests of the process; other commands build them. Pages with the
/// same commands share the run.
/// @param page  "cube", say  @throws std::runtime_error with what was printed when a program fails
const TutorialRun& run_of_tutorial(const std::string& page);

}  // namespace mpol::testing
