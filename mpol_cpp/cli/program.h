#pragma once

#include <string>
#include <vector>

namespace mpol::cli {

/// Does what a command line asks for, its messages on stdout and stderr.
///
/// @param arguments  without the program's name
/// @return the exit code; nothing is thrown
int run_program(const std::vector<std::string>& arguments);

}  // namespace mpol::cli

/// The same for `main`, with the handlers of signals installed. The program loads the library and looks this name up.
extern "C" int mpol_main(int argument_count, char** argument_values);
