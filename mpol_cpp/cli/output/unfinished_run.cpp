#include <mpol_cpp/cli/output/unfinished_run.h>

#include <system_error>

#include <mpol_cpp/train/checkpoint.h>

namespace mpol::cli {

namespace fs = std::filesystem;

bool holds_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  const auto checkpoint = folder / checkpoint_name;
  return fs::exists(checkpoint, ignored) || fs::exists(previous_checkpoint(checkpoint), ignored) ||
         fs::exists(folder / scan_name, ignored) || fs::exists(folder / blocks_name, ignored) ||
         fs::exists(folder / points_name, ignored);
}

std::vector<fs::path> group_states(const fs::path& state) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(state / group_states_name, ignored)) {
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  }
  return folders;
}

void remove_group_errors(const fs::path& state) {
  std::error_code ignored;
  fs::remove(state / group_errors_name, ignored);
  for (const auto& folder : group_states(state)) fs::remove(folder / group_errors_name, ignored);
}

fs::path state_folder(const fs::path& out) { return holds_checkpoint(out / unfinished_name) ? out / unfinished_name : out; }

fs::path replaced_record(const fs::path& out) { return out / unfinished_name / "replaced.toml"; }

void discard_unfinished(const fs::path& out) {
  std::error_code ignored;
  const bool recorded = fs::exists(out / "run.toml", ignored);
  for (const auto& entry : fs::directory_iterator(out / unfinished_name, ignored)) {
    if (recorded || entry.path() != replaced_record(out)) fs::remove_all(entry.path(), ignored);
  }
  fs::remove(out / unfinished_name, ignored);  // when it is empty
}

}  // namespace mpol::cli
