#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "fenced_blocks.h"
#include "program.h"

namespace mpol::testing {

/// The folder that holds README.md and docs.
const std::filesystem::path& repository();

/// The pages in a folder of the repository, by name.
std::vector<std::filesystem::path> pages_of(const std::string& folder);

/// Every page that people read.
std::vector<std::filesystem::path> all_pages();

/// The commands of a block: its lines, of which one that ends with a backslash goes on in the next; a script, which begins with
/// #!, is one command.
std::vector<std::string> commands_of(const FencedBlock& block);

/// A text with white space in single quotes, for a shell.
std::string quoted(const std::string& text);

/// A folder in which the commands of a page run as in a terminal: it holds `data` of the repository, `build/release/bin`, and
/// `obs.ms`, a measurement set, where casacore is, and is the home of who runs them.
class PageFolder {
 public:
  PageFolder();

  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  const std::filesystem::path& path() const { return folder_.path(); }

  /// What a command makes of it. mpirun is the one of the MPI that the build has; without MPI it, and everywhere srun and
  /// torchrun, which is Python's, are programs that run the command once.
  Outcome run(const std::string& command) const;

  /// What a block needs that this build has not, such as casacore; empty: it can run.
  std::string missing_for(const FencedBlock& block) const;

 private:
  Scratch folder_, programs_;
};

/// Runs the blocks `sh` of a page as they are written, one after the other, and those `python` where `python_too` is what is to
/// run them; each command must end well. A block that cannot run in this build ends it with a warning.
/// @return how many commands there were
std::size_t run_commands_of(const std::filesystem::path& page, const PageFolder& folder, const std::string& python_too = {});

}  // namespace mpol::testing
