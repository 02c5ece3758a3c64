#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Config.hpp>

namespace mpol::cli {

/// One verb of the program. `program` runs `run` when the command line names it, and turns what it throws into one
/// line on stderr and an exit code (ending.h).
struct Verb {
  CLI::App* app;                          ///< its options; the name is the verb's
  std::function<int()> run;               ///< what it does once the options are parsed; returns the exit code
  std::vector<std::string> results = {};  ///< files of which each tells that this verb wrote to a folder
  bool is_fit = false;                    ///< makes an image by a fit, whose work ranks share and with which --resume goes on
};

/// The verbs, in the order of `mpol --help`. Each is a file in cli/verbs with `Verb add_NAME(CLI::App& program)`, which adds its
/// subcommand, with options, help and an example, to the program, and says by which files its results are known.
#define MPOL_VERBS(verb)                                                                                                       \
  verb(image) verb(crossval) verb(dirty) verb(inspect) verb(weights) verb(profile) verb(polar) verb(match) verb(geometry)      \
      verb(radial) verb(spectrum) verb(deproject) verb(convolve) verb(pbcor) verb(compare) verb(plot) verb(show) verb(predict) \
          verb(filter) verb(export) verb(simulate) verb(devices)

#define MPOL_DECLARE_VERB(name) Verb add_##name(CLI::App& program);
MPOL_VERBS(MPOL_DECLARE_VERB)
#undef MPOL_DECLARE_VERB

/// Their names, in that order.
#define MPOL_NAME_VERB(name) #name,
inline constexpr std::array verb_names = {MPOL_VERBS(MPOL_NAME_VERB)};
#undef MPOL_NAME_VERB

// These tell of all verbs; `verbs` holds them all, and themselves, once the program runs.
Verb add_completion(CLI::App& program, const std::vector<Verb>& verbs);
Verb add_manual(CLI::App& program, const std::vector<Verb>& verbs);

}  // namespace mpol::cli
