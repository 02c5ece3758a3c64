#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/program/option_set.h>

namespace mpol::cli {

/// HISTORY lines of the files of a verb, from which its command line can be written again: what it says of itself, then
/// "name = value" of every setting that alters the result.
/// @param title  such as "mpol dirty"
std::vector<std::string> history_lines(const std::string& title, const OptionSet& settings);

}  // namespace mpol::cli
