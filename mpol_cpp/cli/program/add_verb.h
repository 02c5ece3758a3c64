#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/cli/program/verb.h>

namespace mpol::cli {

/// What the help says of a verb beside its options.
struct VerbHelp {
  const char* name;
  const char* description;  ///< one line
  const char* example;      ///< below the options
  const char* notes = "";   ///< between these and the example
};

/// Adds a verb to the program. Its options are those that `declare(OptionSet&, Options&)`, beside the type, declares.
/// @param run      what it does: takes Options& and const OptionSet&, returns the exit code
/// @param results  files of which each tells that this verb wrote to a folder
/// @param initial  the options before anything is declared
template <typename Options, typename Run>
Verb add_verb(CLI::App& program, const VerbHelp& help, Run run, std::vector<std::string> results = {}, Options initial = {}) {
  auto* app = program.add_subcommand(help.name, help.description);
  const std::string notes = help.notes;
  app->footer(notes.empty() ? help.example : notes + "\n\n" + help.example);
  const auto options = std::make_shared<Options>(std::move(initial));
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings, run] { return run(*options, *settings); }, std::move(results)};
}

}  // namespace mpol::cli
