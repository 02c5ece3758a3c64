#include <mpol_cpp/core/log.h>

#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

namespace mpol {
namespace {

void to_stderr(LogLevel level, std::string_view message) {
  if (level == LogLevel::info) return;
  std::fprintf(stderr, "mpol: warning: %.*s\n", static_cast<int>(message.size()), message.data());
}

struct Logger {
  std::mutex mutex;
  LogSink sink = to_stderr;
  std::set<std::string, std::less<>> said;
};

Logger& logger() {
  static Logger instance;
  return instance;
}

void log(LogLevel level, const std::string& message) {
  const std::lock_guard lock(logger().mutex);
  if (logger().sink) logger().sink(level, message);
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  const std::lock_guard lock(logger().mutex);
  return std::exchange(logger().sink, std::move(sink));
}

void log_info(const std::string& message) { log(LogLevel::info, message); }

void log_warning(const std::string& message) { log(LogLevel::warning, message); }

void log_warning_once(const std::string& message) {
  {
    const std::lock_guard lock(logger().mutex);
    if (!logger().said.insert(message).second) return;
  }
  log(LogLevel::warning, message);
}

}  // namespace mpol
