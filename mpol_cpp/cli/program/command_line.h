#pragma once

#include <string>
#include <vector>

namespace mpol::cli {

/// Keeps the arguments of this call of the program for what is recorded of a run.
void note_command_line(const std::vector<std::string>& arguments);

/// The call as a shell would take it, "mpol image 'my data.npz' -o out".
std::string command_line();

}  // namespace mpol::cli
