#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/settings/setting.h>
#include <mpol_cpp/cli/program/verb.h>

namespace mpol::cli {

/// The settings that variables of the environment give to a verb: MPOL_NAME, in capitals and with
/// underscores, is the default of its option --name. Those of other verbs' options are passed over, and so are --help and
/// --config.
std::vector<Setting> environment_settings(const CLI::App& verb);

/// Names of variables MPOL_… that are no option of any verb, nor another variable that mpol knows; sorted.
std::vector<std::string> unknown_variables(const std::vector<Verb>& verbs);

}  // namespace mpol::cli
