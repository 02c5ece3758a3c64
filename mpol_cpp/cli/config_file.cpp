#include <mpol_cpp/cli/config_file.h>

#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include <toml++/toml.h>

#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/cli/option_set.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

constexpr std::array other_tables = {"image",     "dirty",    "inspect", "devices", "simulate", "weights", "profile",
                                     "deproject", "convolve", "compare", "plot",    "predict",  "record"};
/// Options whose value is a file or a folder, when it is one.
constexpr std::array path_options = {"data", "image", "mask",    "start",    "out",          "array",
                                     "sky",  "truth", "beam-of", "residual", "kernel-folder"};

template <std::size_t N>
bool contains(const std::array<const char*, N>& names, std::string_view name) {
  for (const auto* candidate : names) {
    if (name == candidate) return true;
  }
  return false;
}

toml::table read_toml(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || std::filesystem::is_directory(path) || !(text << file.rdbuf())) {
    throw FileError(error_text("configuration file", path.string(), "cannot be read", "check the path given to --config"));
  }
  try {
    return toml::parse(text.str());
  } catch (const toml::parse_error& error) {
    throw FileError(error_text("configuration file", path.string(),
                               fmt::format("line {}: {}", error.source().begin.line, error.description()),
                               "correct it: it must be TOML, for example `npix = 180`"));
  }
}

/// A start given as "base:V", "flat:V" or "dirty" is not a file.
bool names_a_file(const std::string& option, const std::string& value) {
  if (!contains(path_options, option)) return false;
  return option != "start" || !(value == "dirty" || value.starts_with("base:") || value.starts_with("flat:"));
}

std::string scalar_text(const toml::node& node, const std::string& name) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* list = node.as_array()) {
    std::string text;
    for (const auto& item : *list) text += (text.empty() ? "" : ",") + scalar_text(item, name);
    return text;
  }
  throw UsageError(
      error_text("configuration key", name, "must be a text, a number, true or false, or a list of them", "correct it"));
}

class Reader {
 public:
  Reader(std::filesystem::path file, const CLI::App& verb) : file_(std::move(file)), verb_(verb) {}

  void read(const toml::table& table, std::vector<std::string>& arguments) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (node.is_table() && contains(other_tables, name)) continue;
      const auto* option = verb_.get_option_no_throw("--" + name);
      if (option == nullptr || name == "config" || name == "help") refuse(name);
      const auto value = scalar_text(node, name);
      if (option->get_items_expected_max() == 0) {
        arguments.push_back(fmt::format("--{}={}", name, value));
      } else {
        const auto text = name == "more-data" ? all_beside_file(value) : names_a_file(name, value) ? beside_file(value) : value;
        arguments.push_back(fmt::format("--{}={}", name, text));
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& name) const {
    throw UsageError(error_text("unknown key in " + file_.string(), name,
                                fmt::format("keys are the long options of `mpol {}`", verb_.get_name()),
                                fmt::format("see `mpol {} --help`", verb_.get_name())));
  }

  std::string all_beside_file(const std::string& paths) const {
    std::string all;
    std::istringstream list(paths);
    for (std::string path; std::getline(list, path, ',');) all += (all.empty() ? "" : ",") + beside_file(path);
    return all;
  }
  std::string beside_file(const std::string& path) const {
    if (path.empty() || std::filesystem::path(path).is_absolute()) return path;
    return (std::filesystem::absolute(file_).parent_path() / path).lexically_normal().string();
  }

  std::filesystem::path file_;
  const CLI::App& verb_;
};

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

std::vector<std::string> config_arguments(const std::filesystem::path& file, const CLI::App& verb) {
  const auto table = read_toml(file);
  const Reader reader(file, verb);
  std::vector<std::string> arguments;
  reader.read(table, arguments);
  if (const auto* own = table.get_as<toml::table>(verb.get_name())) reader.read(*own, arguments);
  return arguments;
}

std::optional<RecordedRun> recorded_run(const std::filesystem::path& file) {
  const auto table = read_toml(file);
  const auto* record = table.get_as<toml::table>("record");
  if (record == nullptr) return std::nullopt;
  RecordedRun run;
  run.data_sha256 = (*record)["data_sha256"].value_or(std::string());
  run.epochs_done = (*record)["epochs_done"].value_or(std::int64_t{0});
  run.epochs_asked = table["image"]["epochs"].value_or(std::int64_t{0});
  run.device = table["image"]["device"].value_or(std::string());
  run.stop_reason = (*record)["stop_reason"].value_or(std::string());
  if (const auto* lines = (*record)["fingerprint"].as_array()) {
    for (const auto& line : *lines) run.fingerprint.push_back(line.value_or(std::string()));
  }
  return run;
}

}  // namespace mpol::cli
