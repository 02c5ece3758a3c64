#include <mpol_cpp/cli/program/option_list.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace mpol::cli {
namespace {

/// The words of "exact|gridded|loose"; none where a value is only named, as in "lambda|PATH" or "N".
std::vector<std::string> choices_in(const std::string& value) {
  if (value.find('|') == std::string::npos) return {};
  std::vector<std::string> words;
  std::istringstream text(value);
  for (std::string word; std::getline(text, word, '|');) {
    const bool is_name =
        std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::islower(c) || std::isdigit(c); });
    if (!is_name) words.push_back(word);
  }
  return words;
}

ListedOption listed(const CLI::Option& option) {
  ListedOption entry;
  entry.name = option.get_lnames().back();
  if (!option.get_snames().empty()) entry.short_name = option.get_snames().front();
  if (option.get_items_expected_max() > 0) entry.value = option.get_type_name();
  entry.initial = entry.value.empty() ? std::string() : option.get_default_str();
  entry.help = option.get_description();
  entry.choices = choices_in(entry.value);
  entry.takes_path = entry.value == "PATH" || entry.value == "FILE[,FILE...]";
  return entry;
}

}  // namespace

std::vector<ListedVerb> list_verbs(const std::vector<Verb>& verbs) {
  std::vector<ListedVerb> list;
  for (const auto& verb : verbs) {
    ListedVerb entry{verb.app->get_name(), verb.app->get_description(), verb.app->get_footer(), {}, {}};
    for (const auto* option : verb.app->get_options()) {
      if (option->get_lnames().empty())
        entry.arguments.push_back({option->get_name(/*positional=*/true), option->get_description()});
      else entry.options.push_back(listed(*option));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace mpol::cli
