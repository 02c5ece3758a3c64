#include <mpol_cpp/cli/output_folder.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = ".mpol.lock";
constexpr const char* staging_name = ".mpol.partial";

[[noreturn]] void refuse(const fs::path& path, const std::string& limit, const std::string& remedy) {
  throw FileError(error_text("output folder", path.string(), limit, remedy));
}

std::string system_text(int code) { return std::error_code(code, std::generic_category()).message(); }

/// True when the name still leads to the open file: another run may have removed it between open and lock.
bool leads_to(const fs::path& path, int descriptor) {
  struct stat by_name = {}, by_descriptor = {};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev;
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& path, Existing existing) {
  path_ = fs::absolute(path).lexically_normal();
  if (!path_.has_filename()) path_ = path_.parent_path();
  try {
    create();
    lock();
    check_contents(existing);
    check_writable();
    fs::remove_all(path_ / staging_name);
  } catch (const fs::filesystem_error& error) {
    release();
    refuse(path_, error.code().message(), "choose a folder that can be written to");
  } catch (...) {
    release();
    throw;
  }
}

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

void OutputFolder::check_contents(Existing existing) const {
  if (existing == Existing::replace) return;
  bool checkpoint = false;
  std::string found;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const auto name = entry.path().filename().string();
    if (name == lock_name || name == staging_name) continue;
    checkpoint = checkpoint || name == "checkpoint.safetensors" || name == "checkpoint.previous.safetensors";
    found = name;
  }
  if (found.empty()) return;
  if (existing == Existing::refuse) {
    refuse(path_, fmt::format("is not empty (it holds {})", found),
           "choose a new folder, or --overwrite to replace the files of an earlier run");
  }
  if (!checkpoint) {
    refuse(path_, fmt::format("holds {} but no checkpoint to resume from", found),
           "choose a new folder, or --overwrite to replace the files of an earlier run");
  }
}

void OutputFolder::lock() {
  const auto path = path_ / lock_name;
  while (true) {
    lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (lock_ < 0) refuse(path_, fmt::format("cannot be written to: {}", system_text(errno)), "choose another folder");
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      ::close(lock_);
      lock_ = -1;
      refuse(path_, "another mpol is writing there", "wait for it to end, or choose another folder");
    }
    if (leads_to(path, lock_)) return;
    ::close(lock_);
  }
}

void OutputFolder::check_writable() const {
  if (::access(path_.c_str(), W_OK | X_OK) != 0) {
    refuse(path_, fmt::format("cannot be written to: {}", system_text(errno)), "choose another folder");
  }
}

fs::path OutputFolder::staged(const std::string& name) {
  std::error_code error;
  fs::create_directories(path_ / staging_name, error);
  if (error) refuse(path_, fmt::format("cannot be written to: {}", error.message()), "make room or choose another folder");
  return path_ / staging_name / name;
}

void OutputFolder::commit() {
  std::error_code error;
  if (!fs::exists(path_ / staging_name)) return;
  for (const auto& entry : fs::directory_iterator(path_ / staging_name)) {
    const auto target = path_ / entry.path().filename();
    if (entry.is_directory()) fs::remove_all(target, error);
    fs::rename(entry.path(), target, error);
    if (error) {
      throw FileError(error_text("cannot write", target.string(), error.message(), "make room or choose another folder"));
    }
  }
  fs::remove_all(path_ / staging_name, error);
}

void OutputFolder::release() noexcept {
  std::error_code ignored;
  if (lock_ >= 0) {
    fs::remove_all(path_ / staging_name, ignored);
    ::unlink((path_ / lock_name).c_str());
    ::close(lock_);
    lock_ = -1;
  }
  if (first_created_.empty()) return;
  for (auto folder = path_; folder != first_created_.parent_path(); folder = folder.parent_path()) {
    if (!fs::remove(folder, ignored)) return;  // keeps what is not empty
  }
}

void commit_with_summary(OutputFolder& folder, const std::string& summary, const OutputOptions& output,
                         const std::string& words) {
  write_file_atomically(folder.staged("summary.json"), summary);
  folder.commit();
  if (output.json) fmt::print("{}", summary);
  else if (!output.quiet) fmt::print("{}", words);
}

}  // namespace mpol::cli
