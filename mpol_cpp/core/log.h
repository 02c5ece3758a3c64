#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace mpol {

/// How much a message matters.
enum class LogLevel {
  info,    ///< what was done or chosen
  warning  ///< what makes a result doubtful
};

/// Receives every message of the library; called from any thread, one at a time.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink (default: one line on stderr for warnings, nothing for infos) and returns the previous one.
LogSink set_log_sink(LogSink sink);

void log_info(const std::string& message);     ///< gives the sink a message of LogLevel::info
void log_warning(const std::string& message);  ///< gives the sink a message of LogLevel::warning
/// As log_warning, but each distinct message is given only once per process.
void log_warning_once(const std::string& message);

}  // namespace mpol
