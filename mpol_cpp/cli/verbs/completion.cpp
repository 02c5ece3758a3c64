#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/completion_script.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/manual_page.h>
#include <mpol_cpp/cli/program/option_list.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

struct TextRequest {
  std::string name;  ///< of a shell, or of a verb
  bool json = false;
};

int print_text(const std::string& text, bool as_json) {
  if (as_json) fmt::print("{}\n", nlohmann::ordered_json{{"text", text}}.dump(2));
  else fmt::print("{}", text);
  return exit_done;
}

int print_completion(const TextRequest& request, const std::vector<Verb>& verbs) {
  for (const auto& shell : shell_choices) {
    if (request.name == shell.name) return print_text(completion_script(shell.value, list_verbs(verbs)), request.json);
  }
  throw UsageError(
      error_text("SHELL", request.name.empty() ? "missing" : request.name, "must be one of bash, zsh, fish", "name your shell"));
}

int print_manual(const TextRequest& request, const std::string& description, const std::vector<Verb>& verbs) {
  const auto list = list_verbs(verbs);
  if (request.name.empty()) return print_text(manual_page_of_program(description, list), request.json);
  for (const auto& verb : list) {
    if (verb.name == request.name) return print_text(manual_page(verb), request.json);
  }
  throw UsageError(error_text("VERB", request.name, "there is no such verb", "see `mpol --help`"));
}

}  // namespace

Verb add_completion(CLI::App& program, const std::vector<Verb>& verbs) {
  auto* app = program.add_subcommand("completion", "Print what makes a shell complete mpol's verbs and options");
  app->footer(
      "Example:\n  mpol completion bash > ~/.local/share/bash-completion/completions/mpol\n"
      "  mpol completion fish > ~/.config/fish/completions/mpol.fish");
  const auto request = std::make_shared<TextRequest>();
  app->add_option("SHELL", request->name, "bash, zsh or fish");
  app->add_flag("--json", request->json, "As JSON on stdout, under `text`");
  return {app, [request, &verbs] { return print_completion(*request, verbs); }};
}

Verb add_manual(CLI::App& program, const std::vector<Verb>& verbs) {
  auto* app = program.add_subcommand("manual", "Print the manual page of a verb, or of the program");
  app->footer("Example:\n  mpol manual image | man -l -");
  const auto request = std::make_shared<TextRequest>();
  app->add_option("VERB", request->name, "Whose page; default: the program's");
  app->add_flag("--json", request->json, "As JSON on stdout, under `text`");
  return {app, [request, &program, &verbs] { return print_manual(*request, program.get_description(), verbs); }};
}

}  // namespace mpol::cli
