#include <mpol_cpp/cli/settings/setting.h>

#include <algorithm>
#include <cctype>

namespace mpol::cli {
namespace {

/// Whether arguments give the option by one of its names, "--out", "--out=disc", "-o" or "-odisc".
bool gives(const std::vector<std::string>& arguments, const CLI::App& verb, const std::string& option) {
  const auto* known = verb.get_option_no_throw(option);
  if (known == nullptr) return false;
  for (const auto& argument : arguments) {
    if (argument == "--") return false;
    for (const auto& name : known->get_lnames())
      if (argument == "--" + name || argument.starts_with("--" + name + "=")) return true;
    for (const auto& name : known->get_snames())
      if (argument.starts_with("-" + name)) return true;
  }
  return false;
}

/// Where an option's name stands in a text as a whole word.
std::size_t place_of(const std::string& option, const std::string& text) {
  for (auto at = text.find(option); at != std::string::npos; at = text.find(option, at + 1)) {
    const auto end = at + option.size();
    const bool goes_on = end < text.size() && (text[end] == '-' || std::isalnum(static_cast<unsigned char>(text[end])) != 0);
    if (!goes_on) return at;
  }
  return std::string::npos;
}

}  // namespace

std::vector<std::string> arguments_of(const std::vector<Setting>& settings) {
  std::vector<std::string> arguments;
  arguments.reserve(settings.size());
  for (const auto& setting : settings) arguments.push_back(setting.argument);
  return arguments;
}

std::string with_origin(const std::string& error, const std::vector<Setting>& settings, const std::vector<std::string>& own,
                        const CLI::App& verb) {
  const auto what_ends = error.find(';');  // what follows are limit and remedy, which may name other options
  const auto what = error.substr(0, what_ends);
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting) {
    const auto option = setting->option();
    const auto place = place_of(option, what);
    const bool is_subject = place == 0 || (place != std::string::npos && what.starts_with("command line"));
    if (is_subject && !gives(own, verb, option))
      return error.substr(0, place) + option + " (" + setting->origin + ")" + error.substr(place + option.size());
  }
  return error;
}

}  // namespace mpol::cli
