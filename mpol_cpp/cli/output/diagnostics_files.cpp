#include <mpol_cpp/cli/output/diagnostics_files.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/event_file.h>

namespace mpol::cli {
namespace {

/// epoch_NNNNNN.png
bool is_figure(const std::string& name) {
  constexpr std::string_view stem = "epoch_", extension = ".png";
  if (name.size() <= stem.size() + extension.size() || !name.starts_with(stem) || !name.ends_with(extension)) return false;
  const auto number = name.substr(stem.size(), name.size() - stem.size() - extension.size());
  return number.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::string diagnostics_figure(std::int64_t epoch) { return fmt::format("epoch_{:06}.png", epoch); }

std::filesystem::path diagnostics_folder(const std::filesystem::path& out) { return out / "diagnostics"; }

bool is_diagnostics_file(const std::string& name) {
  return is_figure(name) || name == diagnostics_table || name == diagnostics_tensors || is_event_file(name);
}

std::vector<std::string> diagnostics_files(const std::filesystem::path& out) {
  const auto folder = diagnostics_folder(out);
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename();
    if (is_diagnostics_file(name.string())) files.push_back((folder.filename() / name).string());
  }
  return files;
}

bool is_of_events(const std::string& file) { return is_event_file(std::filesystem::path(file).filename().string()); }

void remove_event_files(const std::filesystem::path& out) {
  std::error_code ignored;
  for (const auto& file : diagnostics_files(out))
    if (is_of_events(file)) std::filesystem::remove(out / file, ignored);
}

void remove_diagnostics(const std::filesystem::path& out) {
  std::error_code ignored;
  for (const auto& file : diagnostics_files(out))
    if (!is_of_events(file)) std::filesystem::remove(out / file, ignored);
  std::filesystem::remove(diagnostics_folder(out), ignored);  // when nothing of the user's is there
}

}  // namespace mpol::cli
