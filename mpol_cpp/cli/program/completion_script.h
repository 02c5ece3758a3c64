#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/program/option_list.h>

namespace mpol::cli {

/// What makes a shell complete verbs, their options and the values that have names; files elsewhere.
/// @param shell  "bash", "zsh" or "fish"
std::string completion_script(const std::string& shell, const std::vector<ListedVerb>& verbs);

}  // namespace mpol::cli
