#include "pages.h"

#include <algorithm>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "catch.h"
#ifdef MPOL_TEST_SETS
#include <mpol_cpp/io/visibilities_npz.h>

#include "set_of_visibilities.h"
#endif

namespace mpol::testing {
namespace {

namespace fs = std::filesystem;

void write_program(const fs::path& path, const std::string& text) {
  write_text(path, "#!/bin/bash\n" + text + "\n");
  fs::permissions(path, fs::perms::owner_all);
}

#ifdef MPOL_TEST_SETS
/// Two windows, one of them of narrow channels about a line, and two fields with one phase center.
void write_observation_set(const fs::path& path) {
  const Scratch scratch;
  TestSet set;
  set.fields = {{"disc", 0, -0.4}, {"disc, later", 0, -0.4}};
  const std::vector<std::vector<std::string>> windows = {
      {"--frequency-ghz", "230,232"},
      {"--frequency-ghz", "230.530,230.532,230.534,230.536,230.538,230.540,230.542,230.544,230.546", "--channel-width-mhz", "2"}};
  for (const auto& window : windows) {
    const auto file = scratch / ("window" + std::to_string(set.windows.size()) + ".npz");
    std::vector<std::string> arguments = {"simulate", "-o", file.string(), "--uv-unit", "m", "--integration", "1200"};
    arguments.insert(arguments.end(), window.begin(), window.end());
    if (const auto run = run_mpol(arguments); run.exit_code != 0) throw std::runtime_error(run.err);
    add_window(set, io::read_npz(file));
  }
  write_set(path, set);
}
#endif

/// A GPU that a page names may not be here: then mpol must say so, and not that it does not understand.
bool only_lacks_a_gpu(const std::string& command, const Outcome& run) {
  return command.find("--device cuda:") != std::string::npos && run.exit_code == 1 && run.error_names("device cuda:") &&
         run.error_names("is not there");
}

void check_command(const PageFolder& folder, const std::string& command) {
  const auto run = folder.run(command);
  INFO(command << "\n" << run.err);
  CHECK((run.exit_code == 0 || only_lacks_a_gpu(command, run)));
}

}  // namespace

const fs::path& repository() {
  static const fs::path folder = fs::path(MPOL_DATA_DIR).parent_path();
  return folder;
}

std::vector<fs::path> pages_of(const std::string& folder) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(repository() / folder)) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  std::ranges::sort(pages);
  return pages;
}

std::vector<fs::path> all_pages() {
  std::vector<fs::path> pages;
  for (const auto* folder : {"docs", "docs/guide", "docs/tutorials", "data", "."}) {
    for (const auto& page : pages_of(folder)) pages.push_back(page.lexically_normal());
  }
  return pages;
}

std::vector<std::string> commands_of(const FencedBlock& block) {
  if (block.text.starts_with("#!")) return {block.text};
  std::vector<std::string> commands;
  std::istringstream lines(block.text);
  bool goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    const bool more = line.ends_with("\\");
    if (more) line.pop_back();
    if (goes_on) commands.back() += line;
    else if (line.find_first_not_of(' ') != std::string::npos) commands.push_back(line);
    goes_on = more;
  }
  return commands;
}

std::string quoted(const std::string& text) { return "'" + std::regex_replace(text, std::regex("'"), "'\\''") + "'"; }

PageFolder::PageFolder() {
  const auto bin = fs::path(MPOL_PROGRAM).parent_path();
  fs::create_directory_symlink(repository() / "data", folder_ / "data");
  fs::create_directories(folder_ / "build/release");
  fs::create_directory_symlink(bin, folder_ / "build/release/bin");
  fs::create_symlink(MPOL_PROGRAM, programs_ / "mpol");
  if (!fs::exists("/usr/bin/man")) write_program(programs_ / "man", "cat");
  write_program(programs_ / "srun", "exec \"$@\"");
  const std::string once = "while [[ $1 == -* ]]; do [[ $1 == --no-python ]] || shift; shift; done; exec \"$@\"";
  write_program(programs_ / "torchrun", once);
#ifdef MPOL_MPIEXEC
  write_program(programs_ / "mpirun", "exec " + quoted(MPOL_MPIEXEC) + " \"$@\"");
#else
  write_program(programs_ / "mpirun", once);
#endif
}

Outcome PageFolder::run(const std::string& command) const {
#ifdef MPOL_TEST_SETS
  if (command.find("obs.ms") != std::string::npos && !fs::exists(folder_ / "obs.ms")) write_observation_set(folder_ / "obs.ms");
#endif
  std::string script = "export PATH=" + quoted(programs_.path().string()) + ":\"$PATH\" HOME=" + quoted(folder_.path().string()) +
                       " SLURM_ARRAY_TASK_ID=1\n";
  script += "set -e -o pipefail\n" + command;
  RunOptions options;
  options.folder = folder_.path();
  // Open MPI wants to be told that root may, and that there may be more ranks than cores; a busy neighbor must not stall
  // LibTorch's threads in examples.
  options.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
                         "OMP_WAIT_POLICY=passive"};
  options.launcher = {"/bin/bash", "-c", script};  // the program that follows is the script's $0
  options.timeout = std::chrono::seconds(300);
  return run_mpol({}, options);
}

std::string PageFolder::missing_for(const FencedBlock& block) const {
#ifndef MPOL_TEST_SETS
  if (block.text.find("obs.ms") != std::string::npos) return "casacore";
#endif
  const std::regex program("build/release/bin/([a-z_]+)");
  for (std::sregex_iterator match(block.text.begin(), block.text.end(), program), end; match != end; ++match) {
    if (!fs::exists(folder_ / match->str())) return match->str();
  }
  return {};
}

std::size_t run_commands_of(const fs::path& page, const PageFolder& folder, const std::string& python_too) {
  std::size_t commands = 0;
  for (const auto& block : blocks_of(read_text(page))) {
    INFO(page);
    const bool is_python = block.language == "python" && !python_too.empty();
    if (block.language != "sh" && !is_python) continue;
    if (const auto missing = folder.missing_for(block); !missing.empty()) {
      WARN(page << ": without " << missing << " its commands stop here");
      break;
    }
    if (is_python) {
      write_text(folder / "page.py", block.text);
      check_command(folder, quoted(python_too) + " page.py");
      ++commands;
      continue;
    }
    for (const auto& command : commands_of(block)) {
      check_command(folder, command);
      ++commands;
    }
  }
  return commands;
}

}  // namespace mpol::testing
