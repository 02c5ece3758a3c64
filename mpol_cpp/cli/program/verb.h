#pragma once

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
  CLI::App* app;             ///< its options; the name is the verb's
  std::function<int()> run;  ///< what it does once the options are parsed; returns the exit code
};

/// Each adds its subcommand, with options, help and an example, to the program.
Verb add_image(CLI::App& program);
Verb add_crossval(CLI::App& program);
Verb add_dirty(CLI::App& program);
Verb add_inspect(CLI::App& program);
Verb add_devices(CLI::App& program);
Verb add_simulate(CLI::App& program);
Verb add_weights(CLI::App& program);
Verb add_profile(CLI::App& program);
Verb add_polar(CLI::App& program);
Verb add_match(CLI::App& program);
Verb add_geometry(CLI::App& program);
Verb add_spectrum(CLI::App& program);
Verb add_radial(CLI::App& program);
Verb add_deproject(CLI::App& program);
Verb add_convolve(CLI::App& program);
Verb add_compare(CLI::App& program);
Verb add_plot(CLI::App& program);
Verb add_predict(CLI::App& program);
Verb add_filter(CLI::App& program);
Verb add_show(CLI::App& program);
// These tell of all verbs; `verbs` holds them all, and themselves, once the program runs.
Verb add_completion(CLI::App& program, const std::vector<Verb>& verbs);
Verb add_manual(CLI::App& program, const std::vector<Verb>& verbs);
Verb add_export(CLI::App& program);

}  // namespace mpol::cli
