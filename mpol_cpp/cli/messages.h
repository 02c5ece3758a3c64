#pragma once

#include <mpol_cpp/cli/data_options.h>

namespace mpol::cli {

/// Sends the library's messages to stderr as the options ask: warnings as one line, `mpol VERB: warning: …`, and with
/// --verbose also infos; nothing with --quiet.
void listen_to_library(const std::string& verb, const OutputOptions& output);

}  // namespace mpol::cli
