#pragma once

#include <string>

#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/cli/program/output_options.h>

namespace mpol::cli {

// How verbs begin and end.

/// Begins a verb whose options are settled: refuses those that have no meaning, and sends the library's messages where the
/// options ask. @throws UsageError
void begin_verb(const OptionSet& settings, const OutputOptions& output);

/// Begins a verb whose results go to a folder: settles that and the other parts of its options before. @throws UsageError
template <typename... Parts>
void begin_verb_with_folder(const OptionSet& settings, const OutputOptions& output, Parts&... parts) {
  settle(output);
  (settle(parts), ...);
  begin_verb(settings, output);
}

/// Ends a verb: stdout gets what the options ask for, its summary, words, or nothing. @return the exit code
int end_verb(const OutputOptions& output, const std::string& summary, const std::string& words);

}  // namespace mpol::cli
