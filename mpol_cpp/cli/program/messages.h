#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/program/output_options.h>

namespace mpol::cli {

/// Sends the library's messages to stderr as the options ask: warnings as one line, `mpol VERB: warning: …`, and with
/// --verbose also infos; nothing with --quiet. On a terminal, and without NO_COLOR, "warning:" is
/// yellow. A warning that comes again is not said again.
void listen_to_library(const std::string& verb, const OutputOptions& output);

/// Names of variables of the environment, of each of which listen_to_library() warns that it means nothing.
void note_unknown_variables(std::vector<std::string> names);

/// The warnings since then, in the order in which they came, each once; with --quiet too.
std::vector<std::string> warnings_so_far();

}  // namespace mpol::cli
