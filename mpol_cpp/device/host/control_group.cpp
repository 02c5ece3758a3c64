#include <mpol_cpp/device/host/control_group.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <system_error>

namespace mpol {
namespace {

namespace fs = std::filesystem;

/// The names of the files in which a version of control groups tells its memory.
struct MemoryFiles {
  const char *limit, *used;
  std::vector<std::string> cached;  // entries of memory.stat
};

/// The path of this process's group in its hierarchy, from a line "hierarchy:controllers:path".
std::optional<fs::path> group_path(const fs::path& table, const std::string& controller) {
  std::ifstream file(table);
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    if (first == std::string::npos) continue;
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto path = fs::path(line.substr(second + 1)).relative_path();
    if (controller.empty() && second == first + 1) return path;
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    for (std::string name; std::getline(controllers, name, ',');) {
      if (!controller.empty() && name == controller) return path;
    }
  }
  return std::nullopt;
}

/// A whole number; nothing for "max" and for what is none.
std::optional<double> whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  return file >> word ? whole_number(word) : std::nullopt;
}

/// Bytes of files that the kernel keeps in memory for a group.
double cached_bytes(const fs::path& folder, const std::vector<std::string>& entries) {
  std::ifstream file(folder / "memory.stat");
  double sum = 0;
  for (std::string name, value; file >> name >> value;) {
    if (std::find(entries.begin(), entries.end(), name) != entries.end()) sum += whole_number(value).value_or(0);
  }
  return sum;
}

std::optional<double> smallest_room(const std::vector<fs::path>& folders, const MemoryFiles& files) {
  std::optional<double> smallest;
  for (const auto& folder : folders) {
    const auto limit = number_in(folder / files.limit);
    if (!limit) continue;
    const double used = std::max(0.0, number_in(folder / files.used).value_or(0) - cached_bytes(folder, files.cached));
    const double room = std::max(0.0, *limit - used);
    smallest = std::min(room, smallest.value_or(room));
  }
  return smallest;
}

}  // namespace

std::vector<fs::path> control_group_folders(const std::string& controller, const fs::path& root) {
  const auto mount = root / "sys/fs/cgroup" / controller;
  auto below = group_path(root / "proc/self/cgroup", controller).value_or(fs::path());
  // A group outside of what this container may see is shown as "/../…".
  if (std::find(below.begin(), below.end(), "..") != below.end()) below.clear();
  std::vector<fs::path> folders;
  while (true) {
    auto folder = below.empty() ? mount : mount / below;
    std::error_code error;
    if (fs::is_directory(folder, error)) folders.push_back(std::move(folder));
    if (below.empty()) return folders;
    below = below.parent_path();
  }
}

std::optional<double> control_group_memory(const fs::path& root) {
  const MemoryFiles version_2 = {"memory.max", "memory.current", {"inactive_file", "active_file"}};
  const MemoryFiles version_1 = {
      "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};  // with groups below
  const auto room = smallest_room(control_group_folders("", root), version_2);
  return room ? room : smallest_room(control_group_folders("memory", root), version_1);
}

}  // namespace mpol
