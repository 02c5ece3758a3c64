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
};

/// Declares them among a verb's options.
void declare(OptionSet& options, OutputOptions& output);
/// Checks them once the command line is parsed. @throws UsageError without a folder
void settle(const OutputOptions& output);

}  // namespace mpol::cli
