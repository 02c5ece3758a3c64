#pragma once

#include <array>
#include <string>
#include <vector>

#include <mpol_cpp/cli/program/choices.h>
#include <mpol_cpp/cli/program/option_list.h>

namespace mpol::cli {

/// Shells that can complete.
enum class Shell { bash, zsh, fish };
inline constexpr auto shell_choices =
    std::to_array<NamedChoice<Shell>>({{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}});

/// What makes a shell complete verbs, their options and the values that have names; files elsewhere.
std::string completion_script(Shell shell, const std::vector<ListedVerb>& verbs);

}  // namespace mpol::cli
