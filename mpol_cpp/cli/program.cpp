#include <mpol_cpp/cli/program.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mpol_cpp/cli/output/build_description.h>
#include <mpol_cpp/cli/program/command_line.h>
#include <mpol_cpp/cli/settings/config_file.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/settings/environment_options.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/output/result_files.h>
#include <mpol_cpp/cli/settings/setting.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/version.h>
#include <mpol_cpp/device/host/host_allocator.h>

namespace mpol::cli {
namespace {

constexpr std::array<std::string_view, 2> build_question = {"--version", "--verbose"};

const Verb* find_verb(const std::string& name, const std::vector<Verb>& verbs) {
  const auto found = std::find_if(verbs.begin(), verbs.end(), [&](const Verb& verb) { return verb.app->get_name() == name; });
  return found == verbs.end() ? nullptr : &*found;
}

/// The settings of the environment and, after them, of a verb's --config file.
std::vector<Setting> settings_for(const Verb& verb, const std::vector<std::string>& arguments) {
  auto settings = environment_settings(*verb.app);
  if (const auto file = config_in(arguments); !file.empty()) {
    const auto of_file = config_settings(file, *verb.app);
    settings.insert(settings.end(), of_file.begin(), of_file.end());
  }
  return settings;
}

/// The settings before the user's own arguments: the last value of an option wins.
std::vector<std::string> with_settings(std::vector<std::string> arguments, const std::vector<Setting>& settings) {
  const auto before = arguments_of(settings);
  if (!before.empty()) arguments.insert(arguments.begin() + 1, before.begin(), before.end());
  return arguments;
}

/// Before the user's own arguments, those that the run in OUT recorded, where --resume is to go on with them.
std::vector<std::string> with_recorded(std::vector<std::string> arguments, const std::vector<Verb>& verbs) {
  for (const auto& verb : verbs) {
    if (!verb.is_fit) continue;
    const auto settings = resumed_arguments(*verb.app);
    if (!settings.empty()) arguments.insert(arguments.begin() + 1, settings.begin(), settings.end());
  }
  return arguments;
}

void parse(CLI::App& program, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());
  program.parse(std::move(arguments));
}

/// What CLI11 finds wrong, in the words of this program.
UsageError usage_error(const CLI::App& program, const CLI::ParseError& error, const std::string& verb) {
  const std::string help = fmt::format("see `mpol {}--help`", verb.empty() ? "" : verb + " ");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return UsageError(error_text(verb.empty() ? "unknown verb or option" : "unknown option or argument",
                                 fmt::format("{}", fmt::join(program.remaining(true), " ")), "there is no such thing", help));
  }
  return UsageError(error_text("command line", error.what(), "cannot be understood", help));
}

/// Whether several ranks have something to do: the first alone answers questions and does what has nothing to share.
bool shares_work(const Verb& verb, const std::vector<std::string>& arguments) {
  const auto asks = [](const std::string& argument) {
    return argument == "--help" || argument == "-h" || argument == "--dry-run";
  };
  return verb.is_fit && std::none_of(arguments.begin(), arguments.end(), asks);
}

bool asks_for_build(const std::vector<std::string>& arguments) {
  return std::is_permutation(arguments.begin(), arguments.end(), build_question.begin(), build_question.end());
}

int run_verb(CLI::App& program, const std::vector<Verb>& verbs, const std::vector<std::string>& arguments,
             const std::string& named) {
  try {
    parse(program, arguments);
    const auto all = with_recorded(arguments, verbs);
    if (all.size() > arguments.size()) parse(program, all);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return program.exit(wanted);
  } catch (const CLI::ParseError& error) {
    throw usage_error(program, error, named);
  }
  for (const auto& verb : verbs) {
    if (!verb.app->parsed()) continue;
    note_unknown_variables(unknown_variables(verbs));
    return verb.run();
  }
  fmt::print(stderr, "{}", program.help());
  return exit_usage;
}

int run(CLI::App& program, const std::vector<Verb>& verbs, const std::vector<std::string>& arguments) {
  if (asks_for_build(arguments)) {
    fmt::print("{}", build_description());
    return exit_done;
  }
  const auto* verb = arguments.empty() ? nullptr : find_verb(arguments.front(), verbs);
  if (verb == nullptr) return run_verb(program, verbs, arguments, {});
  const auto settings = settings_for(*verb, arguments);
  const auto origin_told = [&](const Error& error) { return with_origin(error.what(), settings, arguments, *verb->app); };
  try {
    return run_verb(program, verbs, with_settings(arguments, settings), arguments.front());
  } catch (const UsageError& error) {
    throw UsageError(origin_told(error));
  } catch (const ValueError& error) {
    throw ValueError(origin_told(error));
  }
}

}  // namespace
}  // namespace mpol::cli

namespace mpol::cli {

int run_program(const std::vector<std::string>& arguments) {
  note_command_line(arguments);
  throw_typed_out_of_memory();
  CLI::App program("Images from radio-interferometric visibilities by regularised maximum likelihood", "mpol");
  program.set_version_flag("--version", "mpol " + mpol::version(),
                           "Print the version; with --verbose those of all parts, and what is built in");
  program.require_subcommand(0, 1);
  program.footer(
      "Example:\n  mpol image vis.npz -o disc\n\n"
      "`mpol VERB --help` explains each verb.");
#define MPOL_ADD_VERB(name) add_##name(program),
  std::vector<Verb> verbs = {MPOL_VERBS(MPOL_ADD_VERB)};
#undef MPOL_ADD_VERB
  verbs.push_back(add_completion(program, verbs));
  verbs.push_back(add_manual(program, verbs));
  note_results(verbs);
  const auto* verb = arguments.empty() ? nullptr : find_verb(arguments.front(), verbs);
  const bool shares = verb != nullptr && shares_work(*verb, arguments);
  return run_on_ranks(verb == nullptr ? std::string() : arguments.front(), shares,
                      [&] { return run(program, verbs, arguments); });
}

}  // namespace mpol::cli

int mpol_main(int argument_count, char** argument_values) {
  mpol::cli::watch_signals();
  return mpol::cli::run_program({argument_values + 1, argument_values + argument_count});
}
