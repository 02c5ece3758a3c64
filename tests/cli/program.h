#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mpol::testing {

/// How a child process ended and what it said.
struct Outcome {
  int exit_code = -1;  ///< -1 when a signal ended it
  int signal = 0;      ///< that signal
  std::string out, err;

  /// Lines on stderr, without the warning that the field is smaller than the scales of the data: the small observation has
  /// longer scales than the few pixels of its runs, and no other test is about that.
  std::vector<std::string> error_lines() const;
  bool error_names(const std::string& words) const { return err.find(words) != std::string::npos; }
};

struct RunOptions {
  std::vector<std::string> launcher = {};                ///< words before the program, such as mpirun's
  std::filesystem::path folder = {};                     ///< working directory; empty: this one's
  std::vector<std::string> environment = {};             ///< "NAME=value", added to this process's
  std::optional<std::uint64_t> largest_file_bytes = {};  ///< RLIMIT_FSIZE
  std::vector<int> ignored_signals = {};                 ///< when the program begins
  std::chrono::seconds timeout = std::chrono::seconds(120);
};

/// The `mpol` program in a child process; killed when it is destroyed while it still runs.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, const RunOptions& options = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal) const;
  pid_t id() const { return pid_; }
  bool running();
  /// Waits for the end; a program that takes longer than its timeout is killed.
  Outcome wait();

 private:
  void collect(int status);

  pid_t pid_ = -1;
  std::filesystem::path folder_;  // holds its stdout and stderr
  std::chrono::steady_clock::time_point deadline_;
  std::optional<Outcome> outcome_;
};

/// Runs `mpol` with arguments to its end.
Outcome run_mpol(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// The same within this process: for what ends before it computes, many times faster than starting a program.
Outcome run_mpol_here(const std::vector<std::string>& arguments);

/// A folder that is removed with its contents at the end of a test. Its name has a space and non-ASCII letters.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);
/// Names in a folder, sorted; empty when it is not there.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace mpol::testing
