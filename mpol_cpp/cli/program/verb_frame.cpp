#include <mpol_cpp/cli/program/verb_frame.h>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {

void begin_verb(const OptionSet& settings, const OutputOptions& output) {
  settings.check_meaning();
  listen_to_library(settings.verb(), output);
}

int end_verb(const OutputOptions& output, const std::string& summary, const std::string& words) {
  if (output.json) fmt::print("{}", summary);
  else if (!output.quiet) fmt::print("{}", words);
  return exit_done;
}

}  // namespace mpol::cli
