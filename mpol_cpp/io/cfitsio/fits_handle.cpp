#include <mpol_cpp/io/cfitsio/fits_handle.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <malloc.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/cfitsio/gzip_file.h>
#include <mpol_cpp/io/cfitsio/header_check.h>

namespace mpol::io {
namespace {

constexpr std::size_t smallest_bytes = 2880;                // a block of the format
constexpr std::size_t growth_bytes = 100 * smallest_bytes;  // when there is more than was expected

/// cfitsio's words for a status, and the first line of its message stack, which is emptied.
std::string reason_of(int status) {
  char text[FLEN_STATUS] = "";
  fits_get_errstatus(status, text);
  char line[FLEN_ERRMSG] = "";
  const std::string first = fits_read_errmsg(line) != 0 ? line : "";
  fits_clear_errmsg();
  return first.empty() ? text : fmt::format("{} ({})", text, first);
}

[[noreturn]] void fail(const std::filesystem::path& path, bool writing, int status, std::string_view doing) {
  const auto reason = reason_of(status);
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

/// Lets only gzip through of what cfitsio would unpack: its readers of older formats trust what they read.
void check_magic(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string first(6, '\0');
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  if (first == "SIMPLE" || first.starts_with("\x1f\x8b")) return;
  throw FileError(
      fmt::format("{}: it begins neither with SIMPLE nor as gzip does; the file is no FITS image or is damaged: write it again",
                  path.string()));
}

/// Memory of zeros: before cfitsio adds a unit it looks whether one follows already, and takes for one what an earlier file
/// left in the memory.
void* zeroed(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory != nullptr) std::memset(memory, 0, ::malloc_usable_size(memory));
  return memory;
}

/// What cfitsio calls for more of such memory.
void* grown(void* memory, std::size_t bytes) {
  void* larger = zeroed(bytes);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, memory, std::min(bytes, ::malloc_usable_size(memory)));
  std::free(memory);
  return larger;
}

}  // namespace

FitsBuffer::FitsBuffer(std::size_t expected_bytes)
    : data(zeroed(std::max(expected_bytes, smallest_bytes))), room(std::max(expected_bytes, smallest_bytes)) {
  if (data == nullptr) throw std::bad_alloc();
}

FitsBuffer::~FitsBuffer() { std::free(data); }

FitsHandle::FitsHandle(fitsfile* file, std::filesystem::path path, FitsBuffer* memory, Use use)
    : file_(file), path_(std::move(path)), memory_(memory), use_(use) {}

FitsHandle::FitsHandle(FitsHandle&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      path_(std::move(other.path_)),
      memory_(other.memory_),
      use_(other.use_),
      unpacked_(std::move(other.unpacked_)),
      status_(other.status_) {}

FitsHandle::~FitsHandle() {
  if (file_ == nullptr) return;
  int ignored = 0;
  fits_close_file(file_, &ignored);
  fits_clear_errmsg();
}

FitsHandle FitsHandle::create(FitsBuffer& memory, std::filesystem::path named) {
  fitsfile* file = nullptr;
  int status = 0;
  fits_create_memfile(&file, &memory.data, &memory.room, growth_bytes, grown, &status);
  if (status != 0) fail(named, true, status, "creating it");
  return {file, std::move(named), &memory, Use::write};
}

FitsHandle FitsHandle::create(const std::filesystem::path& path, std::filesystem::path named) {
  check_name(path);
  fitsfile* file = nullptr;
  int status = 0;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);  // cfitsio creates what is not there
  fits_create_diskfile(&file, path.c_str(), &status);
  if (status != 0) fail(named, true, status, "creating it");
  return {file, std::move(named), nullptr, Use::write};
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
  check_magic(path);
  auto unpacked = unpack_gzip(path);
  HeaderCheck(path).check(0);
  fitsfile* file = nullptr;
  int status = 0;
  if (unpacked) {
    fits_open_memfile(&file, path.c_str(), READONLY, &unpacked->data, &unpacked->room, 0, nullptr, &status);
  } else {
    fits_open_diskfile(&file, path.c_str(), READONLY, &status);
  }
  if (status != 0) fail(path, false, status, "opening it");
  FitsHandle handle(file, path, nullptr, Use::read);
  handle.unpacked_ = std::move(unpacked);
  return handle;
}

void FitsHandle::check(std::string_view doing) {
  if (status_ != 0) fail(path_, use_ == Use::write, std::exchange(status_, 0), doing);
}

bool FitsHandle::succeeded() {
  const bool success = std::exchange(status_, 0) == 0;
  if (!success) fits_clear_errmsg();
  return success;
}

int FitsHandle::unit() {
  int number = 1;
  fits_get_hdu_num(file_, &number);
  return number;
}

void FitsHandle::move_to(int unit) {
  fits_movabs_hdu(file_, unit, nullptr, &status_);
  check("reading its units");
}

void FitsHandle::close() {
  if (memory_ != nullptr) {
    LONGLONG header = 0, data = 0, end = 0;
    fits_flush_file(file_, &status_);
    fits_get_hduaddrll(file_, &header, &data, &end, &status_);
    memory_->bytes = static_cast<std::size_t>(end);
  }
  fits_close_file(std::exchange(file_, nullptr), &status_);
  check("closing it");
}

}  // namespace mpol::io
