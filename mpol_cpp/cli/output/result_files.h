#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/program/verb.h>

namespace mpol::cli {

/// Notes by which files the results of each verb of the program are known (Verb::results).
void note_results(const std::vector<Verb>& verbs);

/// The verb whose results are known by a file of this name; empty: there is none.
std::string verb_of_result(const std::string& name);

}  // namespace mpol::cli
