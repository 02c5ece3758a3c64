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
/// A line of words on stdout, unless --quiet or --json forbids it.
void tell(const std::string& line);

/// Keeps what a reader says of a file for summary.json. @param json  an object
void note_reading(std::string json);
/// All of them since listen_to_library.
std::vector<std::string> readings_so_far();

/// The warnings since then, in the order in which they came, each once; with --quiet too.
std::vector<std::string> warnings_so_far();

}  // namespace mpol::cli
