#include <mpol_cpp/cli/settings/environment_options.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

extern char** environ;

namespace mpol::cli {
namespace {

constexpr std::string_view variable_prefix = "MPOL_";

/// Variables that are no options: the instruction set, and what our tests tell each other.
constexpr std::array<std::string_view, 4> other_variables = {"ISA", "FAULT_", "FUZZ_", "TEST_"};

/// Variables MPOL_…, without that, and their values.
std::map<std::string, std::string> mpol_variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with(variable_prefix)) continue;
    variables.emplace(text.substr(variable_prefix.size(), equals - variable_prefix.size()), text.substr(equals + 1));
  }
  return variables;
}

/// "CELL_SIZE" -> "--cell-size"; empty for a name that could be no option's.
std::string option_of_variable(const std::string& name) {
  std::string option = "--";
  for (const char c : name) {
    if (std::islower(static_cast<unsigned char>(c))) return {};
    option += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return option == "--help" || option == "--config" ? std::string() : option;
}

bool is_option_of(const CLI::App& verb, const std::string& option) {
  return !option.empty() && verb.get_option_no_throw(option) != nullptr;
}

}  // namespace

std::vector<Setting> environment_settings(const CLI::App& verb) {
  std::vector<Setting> settings;
  for (const auto& [name, value] : mpol_variables()) {
    const auto option = option_of_variable(name);
    if (!is_option_of(verb, option)) continue;
    settings.push_back({option + "=" + value, std::string(variable_prefix) + name + " in the environment"});
  }
  return settings;
}

std::vector<std::string> unknown_variables(const std::vector<Verb>& verbs) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : mpol_variables()) {
    const auto option = option_of_variable(name);
    const bool known =
        std::any_of(verbs.begin(), verbs.end(), [&](const Verb& verb) { return is_option_of(*verb.app, option); }) ||
        std::any_of(other_variables.begin(), other_variables.end(),
                    [&, &text = name](std::string_view other) { return text.starts_with(other); });
    if (!known) unknown.push_back(std::string(variable_prefix) + name);
  }
  return unknown;
}

}  // namespace mpol::cli
