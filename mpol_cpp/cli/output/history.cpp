#include <mpol_cpp/cli/output/history.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/version.h>

namespace mpol::cli {

std::vector<std::string> history_lines(const std::string& title, const OptionSet& settings) {
  std::vector<std::string> lines = {fmt::format("{}, version {}", title, version())};
  for (const auto& setting : settings.recorded()) {
    if (setting.record == Record::result) lines.push_back(fmt::format("{} = {}", setting.name, setting.toml_value));
  }
  return lines;
}

}  // namespace mpol::cli
