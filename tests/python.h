#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace mpol::testing {

/// The Python that has numpy and astropy: the environment variable MPOL_TEST_PYTHON, else what the build was given.
inline std::string python() {
  const char* chosen = std::getenv("MPOL_TEST_PYTHON");
  const std::string name = chosen != nullptr ? chosen : MPOL_TEST_PYTHON;
  if (name.empty())
    throw std::runtime_error("this test needs a Python with numpy and astropy: ./run_tests makes one, or set MPOL_TEST_PYTHON");
  return name;
}

/// Output of a shell command. @throws std::runtime_error with the output when it fails
inline std::string run_command(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string output;
  std::array<char, 4096> block;
  while (const auto count = std::fread(block.data(), 1, block.size(), pipe)) output.append(block.data(), count);
  if (::pclose(pipe) != 0) throw std::runtime_error(command + " failed:\n" + output);
  return output;
}

/// Runs a Python script with arguments and gives back what it printed. @throws std::runtime_error when it fails
inline std::string run_python(const std::string& script, const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  std::ofstream(folder / "script.py") << script;
  std::string command = python() + " " + (folder / "script.py").string();
  for (const auto& argument : arguments) command += " '" + argument + "'";
  return run_command(command);
}

}  // namespace mpol::testing
