#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "catch.h"
#include "python.h"

namespace mpol::testing {

/// What an example prints. @throws std::runtime_error with that when it fails
inline std::string run_example(const std::string& name, const std::vector<std::string>& arguments) {
  auto command = "'" + (std::filesystem::path(MPOL_EXAMPLES) / name).string() + "'";
  for (const auto& argument : arguments) command += " '" + argument + "'";
  return run_command(command);
}

/// The number behind some words.
inline double number_after(const std::string& words, const std::string& text) {
  INFO(words << " in " << text);
  const auto at = text.find(words);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + words.size()));
}

}  // namespace mpol::testing
