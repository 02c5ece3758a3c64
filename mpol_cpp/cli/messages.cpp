#include <mpol_cpp/cli/messages.h>

#include <cstdio>

#include <mpol_cpp/core/log.h>

namespace mpol::cli {

void listen_to_library(const std::string& verb, const OutputOptions& output) {
  const bool quiet = output.quiet, verbose = output.verbose && !quiet;
  set_log_sink([verb, quiet, verbose](LogLevel level, std::string_view message) {
    const bool warning = level == LogLevel::warning;
    if (warning ? quiet : !verbose) return;
    std::fprintf(stderr, "mpol %s: %s%.*s\n", verb.c_str(), warning ? "warning: " : "", static_cast<int>(message.size()),
                 message.data());
  });
}

}  // namespace mpol::cli
