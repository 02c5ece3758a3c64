#include <mpol_cpp/cli/program/messages.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

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

}  // namespace

void listen_to_library(const std::string& verb, const OutputOptions& output) {
  warnings_of_run().clear();
  words_of_run() = {.silent = output.quiet || output.json, .readings = {}};
  const bool quiet = output.quiet, verbose = output.verbose && !quiet;
  set_log_sink([verb, quiet, verbose](LogLevel level, std::string_view text) {
    const std::string message(text);
    const bool warning = level == LogLevel::warning;
    if (warning && !warnings_of_run().add(message)) return;
    if (warning ? quiet : !verbose) return;
    std::fprintf(stderr, "mpol %s: %s%s\n", verb.c_str(), warning ? "warning: " : "", message.c_str());
  });
}

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
