#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/program/verb.h>

namespace mpol::cli {

/// An option of a verb as completions and manual pages tell of it: from the table that makes --help.
struct ListedOption {
  std::string name;        ///< long, without its dashes
  std::string short_name;  ///< without its dash; empty: none
  std::string value;       ///< what its value is called; empty: a flag
  std::string initial;     ///< its default; empty: none that is said
  std::string help;
  std::vector<std::string> choices;  ///< where only these may be given
  bool takes_path = false;
};

/// What a verb is given without an option in front, "DATA".
struct ListedArgument {
  std::string name, help;
};

/// A verb with all that it understands, in the order of its help.
struct ListedVerb {
  std::string name, help, footer;
  std::vector<ListedArgument> arguments;
  std::vector<ListedOption> options;
};

std::vector<ListedVerb> list_verbs(const std::vector<Verb>& verbs);

}  // namespace mpol::cli
