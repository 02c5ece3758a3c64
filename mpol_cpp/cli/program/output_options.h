#pragma once

#include <filesystem>

#include <mpol_cpp/cli/program/option_set.h>

namespace mpol::cli {

/// Where results go, and what is said on the way: every verb that writes a folder.
struct OutputOptions {
  std::filesystem::path out;
  bool overwrite = false;
  bool quiet = false;
  bool verbose = false;
  bool json = false;
  std::filesystem::path config;

  bool speaks() const { return !quiet && !json; }  ///< whether results are told in words on stdout
};

/// Declares them among a verb's options.
void declare(OptionSet& options, OutputOptions& output);
/// Checks them once the command line is parsed. @throws UsageError without a folder
void settle(const OutputOptions& output);

}  // namespace mpol::cli
