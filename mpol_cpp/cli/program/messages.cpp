#include <mpol_cpp/cli/program/messages.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>

namespace mpol::cli {
namespace {

/// The warnings of the run, which the log's sink fills from any thread.
class WarningList {
 public:
  void clear() {
    const std::lock_guard lock(mutex_);
    warnings_.clear();
  }
  /// False when it is there already.
  bool add(const std::string& warning) {
    const std::lock_guard lock(mutex_);
    if (std::find(warnings_.begin(), warnings_.end(), warning) != warnings_.end()) return false;
    warnings_.push_back(warning);
    return true;
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;
};

/// What the run may say on stdout, and what was read; one thread's.
struct RunWords {
  bool silent = false;
  std::vector<std::string> readings;
};

RunWords& words_of_run() {
  static RunWords words;
  return words;
}

WarningList& warnings_of_run() {
  static WarningList list;
  return list;
}

std::vector<std::string>& unknown_names() {
  static std::vector<std::string> names;
  return names;
}

}  // namespace

void listen_to_library(const std::string& verb, const OutputOptions& output) {
  warnings_of_run().clear();
  words_of_run() = {.silent = output.quiet || output.json, .readings = {}};
  const bool quiet = output.quiet, verbose = output.verbose && !quiet;
  const char* no_color = std::getenv("NO_COLOR");
  const bool colors = ::isatty(STDERR_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
  const std::string mark = colors ? "\x1b[33mwarning:\x1b[0m " : "warning: ";
  set_log_sink([verb, quiet, verbose, mark](LogLevel level, std::string_view text) {
    const std::string message(text);
    const bool warning = level == LogLevel::warning;
    if (warning && !warnings_of_run().add(message)) return;
    if (warning ? quiet : !verbose) return;
    std::fprintf(stderr, "mpol %s: %s%s\n", verb.c_str(), warning ? mark.c_str() : "", message.c_str());
  });
  for (const auto& name : unknown_names())
    log_warning(fmt::format("the variable {} of the environment is no option of any verb: correct its name or unset it", name));
}

void note_unknown_variables(std::vector<std::string> names) { unknown_names() = std::move(names); }
void tell(const std::string& line) {
  if (!words_of_run().silent) std::printf("%s\n", line.c_str());
}

void note_reading(std::string json) {
  auto& readings = words_of_run().readings;
  if (std::find(readings.begin(), readings.end(), json) == readings.end()) readings.push_back(std::move(json));
}

std::vector<std::string> readings_so_far() { return words_of_run().readings; }

std::vector<std::string> warnings_so_far() { return warnings_of_run().all(); }

}  // namespace mpol::cli
