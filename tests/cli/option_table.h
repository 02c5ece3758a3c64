#pragma once

#include <string>
#include <vector>

namespace mpol::testing {

/// One option of a verb, a command line that it is added to, and what it must change there.
///
/// `{vis}`, `{image}`, … in the arguments are files of OptionFiles (options_test.cpp); `{run}` is an empty folder, in which
/// `{out}`, the verb's OUT, is named.
struct OptionRow {
  std::string option;             ///< the long name
  std::string value;              ///< empty: a flag
  std::vector<std::string> base;  ///< the command line without it
  /// "exit", "stdout" or "stderr" (numbers aside), a file under {run}, or one of its keys, `out/summary.json#threads`.
  std::string changes;
  bool again = false;  ///< the command line without it ran there before
};

/// All options of a verb, each at least once.
struct VerbRows {
  std::string verb;
  std::vector<OptionRow> rows;
};

/// The verbs of the program, with a row for each option of their --help.
std::vector<VerbRows> option_table();

/// A command line with options that have no meaning there, and the one that is refused.
struct RefusedRow {
  std::vector<std::string> arguments;
  std::string option;
};
std::vector<RefusedRow> refused_options();

}  // namespace mpol::testing
