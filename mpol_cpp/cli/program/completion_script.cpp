#include <mpol_cpp/cli/program/completion_script.h>

#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

/// A text with a backslash before each of some characters.
std::string with_escapes(const std::string& text, const std::string& special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

/// Between single quotes of a Bourne shell.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string bash_script(const std::vector<ListedVerb>& verbs) {
  std::string names, cases;
  for (const auto& verb : verbs) {
    names += verb.name + " ";
    std::string options, values;
    for (const auto& option : verb.options) {
      options += "--" + option.name + " ";
      if (!option.choices.empty())
        values += fmt::format("        --{}) words={}; named=1 ;;\n", option.name,
                              in_quotes(fmt::format("{}", fmt::join(option.choices, " "))));
      else if (!option.value.empty()) values += fmt::format("        --{}) return ;;\n", option.name);
    }
    cases += fmt::format("    {})\n      case $before in\n{}        *) words={} ;;\n      esac ;;\n", verb.name, values,
                         in_quotes(options));
  }
  return fmt::format(
      "# Completion of mpol for bash: made by `mpol completion bash`.\n"
      "_mpol() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words= named=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W {} -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}"
      "  esac\n"
      "  if [[ $current == -* || -n $named ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$current\")); fi\n"
      "}}\n"
      "complete -o default -F _mpol mpol\n",
      in_quotes(names), cases);
}

std::string zsh_script(const std::vector<ListedVerb>& verbs) {
  std::string names, cases;
  for (const auto& verb : verbs) {
    names += fmt::format("    {}\n", in_quotes(with_escapes(verb.name, ":") + ":" + verb.help));
    cases += fmt::format("    {})\n      _arguments -s \\\n", verb.name);
    for (const auto& option : verb.options) {
      auto spec = fmt::format("--{}{}[{}]", option.name, option.value.empty() ? "" : "=", with_escapes(option.help, "[]\\:"));
      if (!option.choices.empty()) spec += fmt::format(":value:({})", fmt::join(option.choices, " "));
      else if (option.takes_path) spec += ":file:_files";
      else if (!option.value.empty()) spec += fmt::format(":{}:", with_escapes(option.value, "[]\\:"));
      cases += fmt::format("        {} \\\n", in_quotes(spec));
    }
    cases += "        '*:file:_files' ;;\n";
  }
  return fmt::format(
      "#compdef mpol\n"
      "# Completion of mpol for zsh: made by `mpol completion zsh`.\n"
      "_mpol() {{\n"
      "  local -a verbs=(\n{}  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $verb in\n{}  esac\n"
      "}}\n"
      "if [ \"$funcstack[1]\" = _mpol ]; then _mpol \"$@\"; else compdef _mpol mpol; fi\n",
      names, cases);
}

std::string fish_words(const std::string& text) { return "'" + with_escapes(text, "\\'") + "'"; }

std::string fish_script(const std::vector<ListedVerb>& verbs) {
  std::string text = "# Completion of mpol for fish: made by `mpol completion fish`.\n";
  for (const auto& verb : verbs)
    text += fmt::format("complete -c mpol -f -n __fish_use_subcommand -a {} -d {}\n", verb.name, fish_words(verb.help));
  for (const auto& verb : verbs) {
    for (const auto& option : verb.options) {
      text += fmt::format("complete -c mpol -n '__fish_seen_subcommand_from {}' -l {}", verb.name, option.name);
      if (!option.short_name.empty()) text += " -s " + option.short_name;
      if (!option.choices.empty())
        text += fmt::format(" -x -a {}", fish_words(fmt::format("{}", fmt::join(option.choices, " "))));
      else if (option.takes_path) text += " -r -F";
      else if (!option.value.empty()) text += " -x";
      text += fmt::format(" -d {}\n", fish_words(option.help));
    }
  }
  return text;
}

}  // namespace

std::string completion_script(Shell shell, const std::vector<ListedVerb>& verbs) {
  switch (shell) {
    case Shell::zsh:
      return zsh_script(verbs);
    case Shell::fish:
      return fish_script(verbs);
    case Shell::bash:
      break;
  }
  return bash_script(verbs);
}

}  // namespace mpol::cli
