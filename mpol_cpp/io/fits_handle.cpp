#include <mpol_cpp/io/fits_handle.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::io {
namespace {

/// cfitsio's words for a status, and the first line of its message stack, which is emptied.
std::string reason_of(int status) {
  char text[FLEN_STATUS] = "";
  fits_get_errstatus(status, text);
  char line[FLEN_ERRMSG] = "";
  const std::string first = fits_read_errmsg(line) != 0 ? line : "";
  fits_clear_errmsg();
  return first.empty() ? text : fmt::format("{} ({})", text, first);
}

/// Reasons that only the system knows: cfitsio reports them all as "error writing to FITS file".
bool is_disk_error(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EACCES || error == EROFS || error == EIO;
}

[[noreturn]] void fail(const std::filesystem::path& path, bool writing, int status, std::string_view doing) {
  const int system = errno;
  const auto reason = reason_of(status);
  if (writing && is_disk_error(system)) throw FileError(cannot_write(path, system));
  if (writing) throw FileError(fmt::format("cannot write {}: {} (while {}); write elsewhere", path.string(), reason, doing));
  throw FileError(
      fmt::format("{}: {} (while {}); the file is no FITS image or is damaged: write it again", path.string(), reason, doing));
}

void check_name(const std::filesystem::path& path) {
  constexpr std::size_t longest = FLEN_FILENAME - 16;
  if (path.string().size() < longest) return;
  throw FileError(fmt::format("{}: the name has {} characters; FITS files may have {}: use a shorter one", path.string(),
                              path.string().size(), longest));
}

}  // namespace

FitsHandle::FitsHandle(fitsfile* file, std::filesystem::path path, bool writing)
    : file_(file), path_(std::move(path)), writing_(writing) {}

FitsHandle::FitsHandle(FitsHandle&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      path_(std::move(other.path_)),
      writing_(other.writing_),
      status_(other.status_) {}

FitsHandle::~FitsHandle() {
  if (file_ == nullptr) return;
  int ignored = 0;
  fits_close_file(file_, &ignored);
  fits_clear_errmsg();
}

FitsHandle FitsHandle::create(const std::filesystem::path& path, std::filesystem::path named) {
  check_name(path);
  fitsfile* file = nullptr;
  int status = 0;
  errno = 0;
  fits_create_diskfile(&file, path.c_str(), &status);
  if (status != 0) fail(named, true, status, "creating it");
  return {file, std::move(named), true};
}

FitsHandle FitsHandle::open(const std::filesystem::path& path) {
  check_name(path);
  std::error_code error;
  const auto found = std::filesystem::status(path, error);
  if (!std::filesystem::exists(found)) throw FileError(fmt::format("{}: no such file; check the path", path.string()));
  if (!std::filesystem::is_regular_file(found))
    throw FileError(fmt::format("{}: not a regular file; a FITS image is needed", path.string()));
  if (std::filesystem::file_size(path, error) == 0) {
    throw FileError(fmt::format("{}: the file is empty (0 bytes); write it again", path.string()));
  }
  fitsfile* file = nullptr;
  int status = 0;
  fits_open_diskfile(&file, path.c_str(), READONLY, &status);
  if (status != 0) fail(path, false, status, "opening it");
  return {file, path, false};
}

void FitsHandle::check(std::string_view doing) {
  if (status_ != 0) fail(path_, writing_, std::exchange(status_, 0), doing);
}

bool FitsHandle::succeeded() {
  const bool success = std::exchange(status_, 0) == 0;
  if (!success) fits_clear_errmsg();
  return success;
}

void FitsHandle::close() {
  fits_close_file(std::exchange(file_, nullptr), &status_);
  check("closing it");
}

}  // namespace mpol::io
