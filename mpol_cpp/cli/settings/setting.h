#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/program/verb.h>

namespace mpol::cli {

/// A setting that does not come from the command line.
struct Setting {
  std::string argument;  ///< "--name=value", as the command line would have it
  std::string origin;    ///< where a user finds it: "MPOL_NPIX in the environment", "line 3 of run.toml"

  std::string option() const { return argument.substr(0, argument.find('=')); }  ///< "--name"
};

/// The settings as arguments.
std::vector<std::string> arguments_of(const std::vector<Setting>& settings);

/// An error's words with the origin of the option that they begin with or, in a parser's words, name; as they are where that
/// option was set on the command line.
/// @param settings  the last one of an option counts
/// @param own       arguments of the command line, which win over settings
std::string with_origin(const std::string& error, const std::vector<Setting>& settings, const std::vector<std::string>& own,
                        const CLI::App& verb);

}  // namespace mpol::cli
