#include <mpol_cpp/cli/output/output_folder.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/output/diagnostics_files.h>
#include <mpol_cpp/cli/output/result_files.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/history_files.h>

namespace mpol::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = ".mpol.lock";
constexpr const char* staging_name = ".mpol.partial";

/// What tells that a run is whole, in the order in which it is taken away.
constexpr std::array record_names = {"run.toml", "summary.json"};

[[noreturn]] void refuse(const fs::path& path, const std::string& limit, const std::string& remedy) {
  throw FileError(error_text("output folder", path.string(), limit, remedy));
}

std::string system_text(int code) { return std::error_code(code, std::generic_category()).message(); }

void check_written(const std::error_code& error, const fs::path& target) {
  if (error) throw FileError(cannot_write(target, error.value()));
}

void sync(const fs::path& folder) {
  if (!sync_folder(folder)) throw FileError(cannot_write(folder, errno));
}

/// True when the name still leads to the open file: another run may have removed it between open and lock.
bool leads_to(const fs::path& path, int descriptor) {
  struct stat by_name = {}, by_descriptor = {};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev;
}

/// Files that a run writes into OUT at once, not staged.
bool is_written_at_once(const std::string& name) {
  return name == checkpoint_name || name == scan_name || name == blocks_name || name == points_name || name == "history.csv" ||
         name == "run.toml" || detail::is_history_block(checkpoint_name, name);
}

void remove_temporaries(const fs::path& out) {
  for (const auto& state : {out, out / unfinished_name}) {
    auto folders = group_states(state);
    folders.push_back(state);
    for (const auto& folder : folders) {
      remove_checkpoint_leftovers(folder / checkpoint_name);
      remove_stale_temporaries(folder, is_written_at_once);
    }
  }
  remove_stale_temporaries(diagnostics_folder(out), is_diagnostics_file);
}

bool holds_temporaries(const fs::path& folder) {
  std::error_code ignored;
  const auto begin = fs::directory_iterator(folder, ignored);
  return std::any_of(begin, fs::directory_iterator(), [](const fs::directory_entry& entry) {
    const auto name = entry.path().filename().string();
    return name.ends_with(".safetensors.link") || !name_of_temporary(name).empty();
  });
}

bool holds_leftovers(const fs::path& out) {
  std::error_code ignored;
  const bool unfinished = fs::exists(out / unfinished_name, ignored) && !holds_checkpoint(out / unfinished_name);
  return unfinished || fs::exists(out / lock_name, ignored) || fs::exists(out / staging_name, ignored) ||
         holds_temporaries(out) || holds_temporaries(diagnostics_folder(out));
}

bool is_record(const std::string& name) {
  return std::find(record_names.begin(), record_names.end(), name) != record_names.end();
}

/// Gives the blocks of a long history in one folder a name in another too, and returns their names.
std::vector<std::string> share_history_blocks(const fs::path& from, const fs::path& to) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const auto name = entry.path().filename().string();
    if (!detail::is_history_block(from / checkpoint_name, name)) continue;
    names.push_back(name);
    if (fs::exists(to / name)) continue;  // its name says what it holds
    fs::create_hard_link(entry.path(), to / name, error);
    if (error) fs::copy_file(entry.path(), to / name, error);  // a file system without hard links
    check_written(error, to / name);
  }
  return names;
}

/// Removes checkpoint, the one before and their history from a folder, and the folder when nothing else is in it.
void remove_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  const auto checkpoint = folder / checkpoint_name;
  detail::remove_other_history_blocks(checkpoint, {});
  for (const auto& path : {checkpoint, previous_checkpoint(checkpoint), folder}) fs::remove(path, ignored);
}

void move_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  check_written(error, to);
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& path, Existing existing, const std::string& verb) {
  path_ = fs::absolute(path).lexically_normal();
  if (!path_.has_filename()) path_ = path_.parent_path();
  try {
    create();
    lock();
    clear_leftovers();
    check_contents(existing, verb);
    check_writable();
    find_state(existing);
  } catch (const fs::filesystem_error& error) {
    release();
    refuse(path_, error.code().message(), "choose a folder that can be written to");
  } catch (...) {
    release();
    throw;
  }
}

OutputFolder::OutputFolder(const OutputOptions& output, const std::string& verb)
    : OutputFolder(output.out, output.overwrite ? Existing::replace : Existing::refuse, verb) {}

OutputFolder::~OutputFolder() { release(); }

void OutputFolder::create() {
  if (fs::exists(path_) && !fs::is_directory(path_)) refuse(path_, "is a file", "choose a new folder");
  fs::path missing = path_;
  while (!fs::exists(missing)) {
    first_created_ = missing;
    missing = missing.parent_path();
  }
  fs::create_directories(path_);
}

void OutputFolder::lock() {
  const auto path = path_ / lock_name;
  while (true) {
    lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (lock_ < 0) refuse(path_, fmt::format("cannot be written to: {}", system_text(errno)), "choose another folder");
    const int error = ::flock(lock_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (error == EWOULDBLOCK) {
      ::close(lock_);
      lock_ = -1;
      refuse(path_, "another mpol is writing there", "wait for it to end, or choose another folder");
    }
    if (error != 0) {
      log_warning(
          fmt::format("{} cannot be locked ({}): see to it that no other mpol writes there", path_.string(), system_text(error)));
      return;
    }
    if (leads_to(path, lock_)) return;
    ::close(lock_);
  }
}

void OutputFolder::clear_leftovers() const {
  fs::remove_all(path_ / staging_name);
  remove_temporaries(path_);
  if (!holds_checkpoint(path_ / unfinished_name)) discard_unfinished(path_);
}

void OutputFolder::check_contents(Existing existing, const std::string& verb) {
  const bool checkpoint = holds_checkpoint(state_folder(path_));
  for (const auto& entry : fs::directory_iterator(path_)) {
    const auto name = entry.path().filename().string();
    if (name == lock_name) continue;
    // What a run that was killed before its first checkpoint may have shown.
    if (existing == Existing::resume && entry.path() == diagnostics_folder(path_)) continue;
    found_ = name;
    const auto owner = verb_of_result(name);
    if (existing == Existing::replace && !owner.empty() && owner != verb) {
      refuse(path_, fmt::format("holds results of `mpol {}` ({}), of which part would stay", owner, name),
             "choose another folder");
    }
  }
  if (found_.empty() || existing == Existing::replace) return;
  const std::string remedy = "choose a new folder, or --overwrite to replace the files of an earlier run";
  if (existing == Existing::refuse) refuse(path_, fmt::format("is not empty (it holds {})", found_), remedy);
  if (!checkpoint) refuse(path_, fmt::format("holds {} but no checkpoint to resume from", found_), remedy);
}

void OutputFolder::check_writable() const {
  if (::access(path_.c_str(), W_OK | X_OK) != 0) {
    refuse(path_, fmt::format("cannot be written to: {}", system_text(errno)), "choose another folder");
  }
}

void OutputFolder::find_state(Existing existing) {
  if (existing == Existing::replace) {
    discard_unfinished(path_);
    state_ = found_.empty() ? path_ : path_ / unfinished_name;
  } else {
    state_ = state_folder(path_);
  }
}

bool OutputFolder::has_checkpoint() const { return holds_checkpoint(state_); }

fs::path OutputFolder::staged(const std::string& name) {
  std::error_code error;
  fs::create_directories(path_ / staging_name, error);
  if (error) refuse(path_, fmt::format("cannot be written to: {}", error.message()), "make room or choose another folder");
  return path_ / staging_name / name;
}

std::vector<std::string> OutputFolder::staged_names() const {
  std::vector<std::string> names;
  const auto staging = path_ / staging_name;
  if (!fs::exists(staging)) return names;
  for (const auto& entry : fs::recursive_directory_iterator(staging)) {
    if (!entry.is_directory()) names.push_back(entry.path().lexically_relative(staging).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void OutputFolder::commit() {
  const auto staging = path_ / staging_name;
  const auto names = staged_names();
  if (names.empty()) return;
  check_targets(names);
  const HoldStop hold;
  withdraw_records(names);
  remove_replaced(names);
  std::set<fs::path> folders = {path_};
  for (const auto& name : names) {
    if (is_record(name)) continue;
    const auto target = path_ / name;
    if (folders.insert(target.parent_path()).second) {
      std::error_code error;
      fs::create_directories(target.parent_path(), error);
      check_written(error, target);
    }
    move_file(staging / name, target);
  }
  move_state();
  for (const auto& folder : folders) sync(folder);
  for (auto name = record_names.rbegin(); name != record_names.rend(); ++name) {
    if (std::binary_search(names.begin(), names.end(), *name)) move_file(staging / *name, path_ / *name);
  }
  sync(path_);
  std::error_code ignored;
  fs::remove_all(path_ / unfinished_name, ignored);
  fs::remove_all(staging, ignored);
  state_ = path_;
}

/// Nothing has been touched when something of the user's is in the way.
void OutputFolder::check_targets(const std::vector<std::string>& names) const {
  std::error_code ignored;
  for (const auto& name : names) {
    const auto target = path_ / name;
    if (fs::is_directory(target, ignored)) throw FileError(cannot_write(target, EISDIR));
    const auto folder = target.parent_path();
    if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored)) throw FileError(cannot_write(target, ENOTDIR));
  }
}

/// From here on OUT does not claim to hold the results of a run.
void OutputFolder::withdraw_records(const std::vector<std::string>& names) const {
  std::error_code error;
  for (const std::string name : record_names) {
    const auto path = path_ / name;
    if (!std::binary_search(names.begin(), names.end(), name) || !fs::exists(path, error)) continue;
    if (name == "run.toml" && keeps_earlier_results()) {
      fs::create_directory(path_ / unfinished_name, error);
      move_file(path, replaced_record(path_));
    } else {
      fs::remove(path, error);
      check_written(error, path);
    }
  }
  sync(path_);
}

void OutputFolder::remove_replaced(const std::vector<std::string>& names) const {
  std::error_code ignored;
  for (const auto& name : replaced_) {
    const fs::path relative(name);
    const bool within = relative.is_relative() && relative == relative.lexically_normal() && *relative.begin() != "..";
    if (!within || std::binary_search(names.begin(), names.end(), name)) continue;
    const auto path = path_ / relative;
    if (fs::is_regular_file(fs::symlink_status(path, ignored))) fs::remove(path, ignored);
    if (relative.has_parent_path()) fs::remove(path.parent_path(), ignored);  // when it is empty
  }
}

/// The checkpoints come last: until they are in OUT, --resume finds them where they were, and what they name in either place.
void OutputFolder::move_state() const {
  if (!keeps_earlier_results()) return;
  const auto checkpoint = state_ / checkpoint_name;
  detail::remove_other_history_blocks(path_ / checkpoint_name, share_history_blocks(state_, path_));
  move_group_states();
  for (const auto& from :
       {previous_checkpoint(checkpoint), checkpoint, state_ / scan_name, state_ / blocks_name, state_ / points_name}) {
    if (fs::exists(from)) move_file(from, path_ / from.filename());
  }
}

/// Those of an earlier run, of other groups or of none, go.
void OutputFolder::move_group_states() const {
  std::error_code error;
  remove_group_errors(path_);
  for (const auto& folder : group_states(path_)) remove_checkpoint(folder);
  fs::remove(path_ / group_states_name, error);  // when it is empty
  for (const auto& folder : group_states(state_)) {
    const auto target = path_ / group_states_name / folder.filename();
    fs::create_directories(target, error);
    check_written(error, target);
    std::vector<fs::path> files;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      files.push_back(entry->path());
    check_written(error, folder);
    for (const auto& file : files) move_file(file, target / file.filename());
  }
}

void OutputFolder::release() noexcept {
  std::error_code ignored;
  if (lock_ >= 0) {
    fs::remove_all(path_ / staging_name, ignored);
    fs::remove(path_ / unfinished_name, ignored);  // when it is empty
    ::unlink((path_ / lock_name).c_str());
    ::close(lock_);
    lock_ = -1;
  }
  if (first_created_.empty()) return;
  for (auto folder = path_; folder != first_created_.parent_path(); folder = folder.parent_path()) {
    if (!fs::remove(folder, ignored)) return;  // keeps what is not empty
  }
}

void OutputFolder::remove_leftovers(const fs::path& path) {
  if (!holds_leftovers(path)) return;
  try {
    const OutputFolder cleaned(path, Existing::resume, "image");
  } catch (const FileError&) {  // another run is there, or nothing of this program's: not this caller's matter
  }
}

int commit_with_summary(OutputFolder& folder, const std::string& summary, const OutputOptions& output, const std::string& words) {
  write_file_atomically(folder.staged("summary.json"), summary);
  folder.commit();
  return end_verb(output, summary, words);
}

}  // namespace mpol::cli
