#include <mpol_cpp/cli/program/file_list.h>

namespace mpol::cli {

std::vector<std::string> split_file_list(const std::string& list) {
  std::vector<std::string> names(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool escaped = list[i] == '\\' && i + 1 < list.size() && list[i + 1] == ',';
    if (escaped) names.back() += list[++i];
    else if (list[i] == ',') names.emplace_back();
    else names.back() += list[i];
  }
  std::erase(names, std::string());
  return names;
}

std::string join_file_list(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) {
    if (!list.empty()) list += ',';
    for (const char c : name) list += c == ',' ? std::string("\\,") : std::string(1, c);
  }
  return list;
}

}  // namespace mpol::cli
