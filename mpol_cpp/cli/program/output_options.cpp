#include <mpol_cpp/cli/program/output_options.h>

#include <mpol_cpp/cli/program/ending.h>

namespace mpol::cli {

void declare(OptionSet& options, OutputOptions& output) {
  options.path("-o,--out", output.out, "Folder for the results: new or empty", Record::none);
  options.flag("--overwrite", output.overwrite, "Replace the files of an earlier run in OUT", Record::none);
  options.flag("--quiet", output.quiet, "Say nothing but errors", Record::none);
  options.flag("--verbose", output.verbose, "Say more on the way", Record::none);
  options.flag("--json", output.json, "Print the content of summary.json on stdout instead of words", Record::none);
  options.path("--config", output.config, "TOML file with settings; the command line beats it", Record::none);
  options.only({"--verbose"}, "without --quiet", [&output] { return !output.quiet; });
}

void settle(const OutputOptions& output) {
  if (output.out.empty()) {
    throw UsageError(error_text("--out", "missing", "the results need a folder", "add -o OUT"));
  }
}

}  // namespace mpol::cli
