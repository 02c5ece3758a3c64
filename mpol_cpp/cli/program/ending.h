#pragma once

#include <functional>
#include <string>

#include <mpol_cpp/core/error.h>

namespace mpol::cli {

/// How the program ends (exit codes of `mpol`).
enum Exit : int {
  exit_done = 0,
  exit_failed = 1,    ///< bad data, missing file, device not there, cannot write, out of memory
  exit_usage = 2,     ///< unknown option, value out of range, missing required option
  exit_diverged = 3,  ///< the fit left the realm of finite numbers
};

/// The command line is wrong: an option is unknown, missing, or out of its range.
class UsageError : public Error {
  using Error::Error;
};

/// The user asked for an end by a signal while something ran that had no better end of its own.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  int signal() const { return signal_; }
  const char* what() const noexcept override { return "interrupted"; }

 private:
  int signal_;
};

/// "<what>: <value>; <limit>; <remedy>": the form of every error of the command line.
std::string error_text(const std::string& what, const std::string& value, const std::string& limit, const std::string& remedy);

/// How an action ended.
struct Ending {
  int code = exit_done;
  std::string line;             ///< for stderr: `mpol VERB: …`; empty where it was no error
  bool is_consequence = false;  ///< of the failure of another rank
};
/// Runs `action` and tells how it ended, whatever it throws.
Ending ending_of(const std::string& verb, const std::function<int()>& action);

/// Runs `action` and returns its exit code; whatever it throws becomes one line on stderr, `mpol VERB: …`, and the exit
/// code that belongs to it.
int run_to_exit_code(const std::string& verb, const std::function<int()>& action);

}  // namespace mpol::cli
