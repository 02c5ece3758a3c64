#include <mpol_cpp/cli/program/messages.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

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

WarningList& warnings_of_run() {
  static WarningList list;
  return list;
}

}  // namespace

void listen_to_library(const std::string& verb, const OutputOptions& output) {
  warnings_of_run().clear();
  const bool quiet = output.quiet, verbose = output.verbose && !quiet;
  set_log_sink([verb, quiet, verbose](LogLevel level, std::string_view text) {
    const std::string message(text);
    const bool warning = level == LogLevel::warning;
    if (warning && !warnings_of_run().add(message)) return;
    if (warning ? quiet : !verbose) return;
    std::fprintf(stderr, "mpol %s: %s%s\n", verb.c_str(), warning ? "warning: " : "", message.c_str());
  });
}

std::vector<std::string> warnings_so_far() { return warnings_of_run().all(); }

}  // namespace mpol::cli
