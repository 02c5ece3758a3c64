#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "catch.h"
#include "program.h"

namespace mpol::testing {

/// Runs a verb whose results go to `out`, which must succeed. @return its summary
inline nlohmann::json summary_of(const std::string& verb, std::vector<std::string> arguments, const std::filesystem::path& out) {
  arguments.insert(arguments.begin(), verb);
  arguments.insert(arguments.end(), {"-o", out.string(), "--json"});
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return nlohmann::json::parse(run.out);
}

/// Checks that a run is refused in one line that has these words, and leaves nothing in `out`.
inline void check_refusal(const std::vector<std::string>& arguments, int exit_code, const std::string& words,
                          const std::filesystem::path& out) {
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  CHECK(run.exit_code == exit_code);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names(words));
  CHECK_FALSE(std::filesystem::exists(out));
}

}  // namespace mpol::testing
