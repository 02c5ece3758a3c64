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

/// A name beside `path` that no other writer uses, short enough for any file system.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  const auto stem = path.filename().string().substr(0, 100);
  return folder_of(path) / fmt::format(".{}.{}-{}.tmp", stem, ::getpid(), counter++);
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

/// Names are on disk only once their folder is; file systems that cannot flush folders keep their own order.
void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

std::string cannot_write(const std::filesystem::path& path, int error) {
  return fmt::format("cannot write {}: {}; {}", path.string(), std::generic_category().message(error), remedy_for(error));
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), temporary_(temporary_beside(path_)) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::is_directory(status) || !path_.has_filename()) throw FileError(cannot_write(path_, EISDIR));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw FileError(fmt::format("cannot write {}: it is a device, pipe or socket; name a regular file", path_.string()));
  }
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file_mode);
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
  flush_folder(folder_of(path_));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace mpol
