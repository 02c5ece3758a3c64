#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <mpol_cpp/core/log.h>

namespace mpol::testing {

/// Collects the library's warnings while it lives.
class Warnings {
 public:
  Warnings()
      : before_(set_log_sink([this](LogLevel level, std::string_view text) {
          if (level == LogLevel::warning) said_.emplace_back(text);
        })) {}
  ~Warnings() { set_log_sink(before_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  const std::vector<std::string>& said() const { return said_; }

 private:
  std::vector<std::string> said_;
  LogSink before_;
};

}  // namespace mpol::testing
