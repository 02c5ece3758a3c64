#include <mpol_cpp/cli/settings/config_file.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>

#include <mpol_cpp/cli/settings/checked_toml.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/file_list.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

/// The table in which a run.toml says what was run.
constexpr const char* record_table = "record";

/// Options whose value is a file or a folder, when it is one.
constexpr std::array path_options = {"data",  "image",   "mask",     "start",         "out",       "array", "sky",
                                     "truth", "beam-of", "residual", "kernel-folder", "templates", "gains", "samples"};

template <std::size_t N>
bool contains(const std::array<const char*, N>& names, std::string_view name) {
  for (const auto* candidate : names) {
    if (name == candidate) return true;
  }
  return false;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || std::filesystem::is_directory(path) || !(text << file.rdbuf())) {
    throw FileError(error_text("configuration file", path.string(), "cannot be read", "check the path given to --config"));
  }
  constexpr std::size_t longest = 1 << 20;  // bytes; as a tree it takes many times as much
  if (text.view().size() > longest) {
    throw FileError(error_text("configuration file", path.string(), fmt::format("has more than {} bytes", longest),
                               "give the run.toml of a run, or a file like it"));
  }
  return text.str();
}

toml::table parse_toml(const std::string& text, const std::filesystem::path& path) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw FileError(error_text("configuration file", path.string(),
                               fmt::format("line {}: {}", error.source().begin.line, error.description()),
                               "correct it: it must be TOML, for example `npix = 180`"));
  } catch (const BrokenToml&) {
    throw FileError(error_text("configuration file", path.string(), "has brackets or values where none may be",
                               "correct it: it must be TOML, for example `npix = 180`"));
  }
}

/// A start given as "auto", "base:V", "flat:V" or "dirty" is not a file, nor is a number of samples.
bool names_a_file(const std::string& option, const std::string& value) {
  if (!contains(path_options, option)) return false;
  if (option == "samples") return value.find_first_not_of("0123456789") != std::string::npos;
  return option != "start" || !(value == "auto" || value == "dirty" || value.starts_with("base:") || value.starts_with("flat:"));
}

std::string scalar_text(const toml::node& node, const std::string& name) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* list = node.as_array()) {
    std::vector<std::string> items;
    for (const auto& item : *list) items.push_back(scalar_text(item, name));
    return name == "more-data" ? join_file_list(items) : fmt::format("{}", fmt::join(items, ","));
  }
  throw UsageError(error_text(fmt::format("configuration key in line {}", node.source().begin.line), name,
                              "must be a text, a number, true or false, or a list of them", "correct it"));
}

std::vector<std::string> texts_of(const toml::array* list) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const auto& item : *list) texts.push_back(item.value_or(std::string()));
  return texts;
}

class Reader {
 public:
  Reader(std::filesystem::path file, const CLI::App& verb) : file_(std::move(file)), verb_(verb) {}

  void read(const toml::table& table, std::vector<Setting>& settings) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (node.is_table() && (contains(verb_names, name) || name == record_table)) continue;
      const auto* option = verb_.get_option_no_throw("--" + name);
      if (option == nullptr || name == "config" || name == "help") refuse(name, key.source().begin.line);
      auto value = scalar_text(node, name);
      if (option->get_items_expected_max() != 0) {
        if (name == "more-data") value = all_beside_file(value);
        else if (names_a_file(name, value)) value = beside_file(value);
      }
      settings.push_back(
          {fmt::format("--{}={}", name, value), fmt::format("line {} of {}", key.source().begin.line, file_.string())});
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& name, std::uint32_t line) const {
    throw UsageError(error_text(fmt::format("unknown key in {}, line {}", file_.string(), line), name,
                                fmt::format("keys are the long options of `mpol {}`", verb_.get_name()),
                                fmt::format("see `mpol {} --help`", verb_.get_name())));
  }

  std::string all_beside_file(const std::string& paths) const {
    auto names = split_file_list(paths);
    for (auto& name : names) name = beside_file(name);
    return join_file_list(names);
  }
  std::string beside_file(const std::string& path) const {
    if (path.empty() || std::filesystem::path(path).is_absolute()) return path;
    return (std::filesystem::absolute(file_).parent_path() / path).lexically_normal().string();
  }

  std::filesystem::path file_;
  const CLI::App& verb_;
};

/// What a setting "--name=value" comes to when nothing is said: the option's default, of a flag "false".
bool is_default(const std::string& argument, const CLI::App& verb) {
  const auto equals = argument.find('=');
  const auto* option = verb.get_option(argument.substr(0, equals));
  const auto value = argument.substr(equals + 1);
  return value == (option->get_items_expected_max() == 0 ? "false" : option->get_default_str());
}

/// The last setting of each option, unless it is the default: a run.toml holds all of them, and says nothing by that about
/// options that the run made no use of.
std::vector<Setting> without_defaults(const std::vector<Setting>& settings, const CLI::App& verb) {
  std::vector<Setting> wanted;
  for (auto setting = settings.begin(); setting != settings.end(); ++setting) {
    const bool again =
        std::any_of(setting + 1, settings.end(), [&](const Setting& later) { return later.option() == setting->option(); });
    if (!again && !is_default(setting->argument, verb)) wanted.push_back(*setting);
  }
  return wanted;
}

}  // namespace

std::filesystem::path config_in(const std::vector<std::string>& arguments) {
  std::filesystem::path file;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") break;
    if (arguments[i] == "--config" && i + 1 < arguments.size()) file = arguments[i + 1];
    if (arguments[i].starts_with("--config=")) file = arguments[i].substr(9);
  }
  return file;
}

std::vector<Setting> config_settings(const std::filesystem::path& file, const CLI::App& verb) {
  return config_settings_of(text_of(file), file, verb);
}

std::vector<Setting> config_settings_of(const std::string& text, const std::filesystem::path& file, const CLI::App& verb) {
  const auto table = parse_toml(text, file);
  const Reader reader(file, verb);
  std::vector<Setting> settings;
  reader.read(table, settings);
  const auto read_table = [&](const std::string& name) {
    if (const auto* own = table.get_as<toml::table>(name)) reader.read(*own, settings);
  };
  // A cross-validation is an image with a search before it: the settings of an image are its own, too.
  if (verb.get_name() == "crossval") read_table("image");
  read_table(verb.get_name());
  return without_defaults(settings, verb);
}

std::optional<RecordedRun> recorded_run(const std::filesystem::path& file) {
  const auto table = parse_toml(text_of(file), file);
  const auto* record = table.get_as<toml::table>(record_table);
  if (record == nullptr) return std::nullopt;
  RecordedRun run;
  run.data_sha256 = (*record)["data_sha256"].value_or(std::string());
  run.epochs_done = (*record)["epochs_done"].value_or(std::int64_t{0});
  run.epochs_asked = table["image"]["epochs"].value_or(std::int64_t{0});
  run.stop_reason = (*record)["stop_reason"].value_or(std::string());
  run.fingerprint = texts_of((*record)["fingerprint"].as_array());
  run.files = texts_of((*record)["files"].as_array());
  return run;
}

std::string toml_version() { return fmt::format("{}.{}.{}", TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH); }

}  // namespace mpol::cli
