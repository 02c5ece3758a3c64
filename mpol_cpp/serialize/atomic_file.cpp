#include <mpol_cpp/serialize/atomic_file.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::size_t buffer_bytes = 1 << 18;
constexpr mode_t file_mode = 0666;  // the umask takes its share

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

constexpr std::size_t longest_stem = 100;  // of a temporary's name: short enough for any file system
constexpr std::string_view temporary_suffix = ".tmp";
constexpr std::string_view digits = "0123456789";

/// A name beside `path` that no other writer of this process uses. One of another machine, or one that is no more, may.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  const auto stem = path.filename().string().substr(0, longest_stem);
  return folder_of(path) / fmt::format(".{}.{}-{}{}", stem, ::getpid(), counter++, temporary_suffix);
}

/// Takes digits off the end of a name, then the character before them. False when there are none, or another character.
bool take_number(std::string_view& name, char before) {
  const auto end = name.find_last_not_of(digits);
  if (end == std::string_view::npos || end + 1 == name.size() || name[end] != before) return false;
  name.remove_suffix(name.size() - end);
  return true;
}

std::string_view remedy_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space or write elsewhere";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f) or write elsewhere";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that you may write to";
    case ENOENT:
    case ENOTDIR:
      return "create its folder first";
    case EISDIR:
      return "name a file, not a folder";
    case ENAMETOOLONG:
      return "choose a shorter name";
    default:
      return "write elsewhere";
  }
}

}  // namespace

std::string cannot_write(const std::filesystem::path& path, int error) {
  return fmt::format("cannot write {}: {}; {}", path.string(), std::generic_category().message(error), remedy_for(error));
}

std::string name_of_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(temporary_suffix)) return {};
  name.remove_suffix(temporary_suffix.size());
  if (!take_number(name, '-') || !take_number(name, '.')) return {};
  return name.empty() ? std::string() : std::string(name.substr(1));
}

void remove_stale_temporaries(const std::filesystem::path& folder, const std::function<bool(const std::string&)>& is_one_of) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const auto name = name_of_temporary(entry.path().filename().string());
    if (!name.empty() && is_one_of(name)) std::filesystem::remove(entry.path(), ignored);
  }
}

void check_can_write(const std::filesystem::path& path) { const AtomicFile probe(path); }

bool sync_folder(const std::filesystem::path& folder) noexcept {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return true;  // it cannot be read: its file system keeps its own order
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  errno = error;
  return error != EIO && error != ENOSPC && error != EDQUOT;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::is_directory(status) || !path_.has_filename()) throw FileError(cannot_write(path_, EISDIR));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw FileError(fmt::format("cannot write {}: it is a device, pipe or socket; name a regular file", path_.string()));
  }
  do {
    temporary_ = temporary_beside(path_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file_mode);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) throw FileError(cannot_write(path_, errno));
}

AtomicFile::~AtomicFile() {
  if (!committed_) discard();
}

void AtomicFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error, std::string_view doing) const {
  throw FileError(fmt::format("{} (while {})", cannot_write(path_, error), doing));
}

void AtomicFile::write(const void* bytes, std::size_t count) {
  if (descriptor_ < 0) throw FileError(fmt::format("cannot write {}: it has been committed", path_.string()));
  if (pending_.size() + count > buffer_bytes) flush();
  if (count <= buffer_bytes) {
    pending_.append(static_cast<const char*>(bytes), count);
    return;
  }
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const auto written = ::write(descriptor_, from, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno, "writing");
    from += written;
    count -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::flush() {
  const std::string pending = std::exchange(pending_, {});
  for (std::size_t done = 0; done < pending.size();) {
    const auto written = ::write(descriptor_, pending.data() + done, pending.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno, "writing");
    done += static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  flush();
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno, "closing");
  // Opened anew: a library that writes by name may have put another file in its place.
  const int written = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  if (written < 0) fail(errno, "finishing");
  const int flushed = ::fsync(written) == 0 ? 0 : errno;
  ::close(written);
  if (flushed != 0 && flushed != EINVAL) fail(flushed, "flushing it to disk");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno, "renaming");
  committed_ = true;
  if (!sync_folder(folder_of(path_))) fail(errno, "flushing its folder to disk");
}

void write_file_atomically(const std::filesystem::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace mpol
