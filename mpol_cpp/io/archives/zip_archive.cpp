#include <mpol_cpp/io/archives/zip_archive.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include <zip.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

constexpr std::string_view remedy = "copy or write the file again";

std::int64_t size_of_existing(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw FileError(fmt::format("{}: no such file; check the path", path.string()));
  }
  if (std::filesystem::is_directory(status)) {
    throw FileError(fmt::format("{}: is a folder; a .npz file is needed", path.string()));
  }
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) throw FileError(fmt::format("{}: {}; a regular .npz file is needed", path.string(), error.message()));
  if (bytes == 0) throw FileError(fmt::format("{}: the file is empty (0 bytes); {}", path.string(), remedy));
  return static_cast<std::int64_t>(bytes);
}

zip* open_archive(const std::filesystem::path& path) {
  int code = 0;
  zip* archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw FileError(fmt::format("{}: cannot be read as a .npz (zip) archive: {}; {}", path.string(), reason, remedy));
}

}  // namespace

ZipMember::ZipMember(zip_file* file, std::string where, std::int64_t bytes, Checksums checksums, bool is_stored)
    : ArchiveMember(std::move(where)),
      file_(file),
      left_(bytes),
      verifies_(checksums == Checksums::compared),
      is_stored_(is_stored) {}

ZipMember::~ZipMember() { zip_fclose(file_); }

void ZipMember::fail(std::string_view what) const {
  throw FileError(fmt::format("{}: {}; the file is damaged: {}", where(), what, remedy));
}

void ZipMember::read(void* destination, std::int64_t bytes) {
  auto* to = static_cast<char*>(destination);
  while (bytes > 0) {
    const auto got = zip_fread(file_, to, static_cast<zip_uint64_t>(bytes));
    if (got < 0) fail(zip_file_strerror(file_));
    if (got == 0) fail(fmt::format("the data end {} bytes too early", left_));
    to += got;
    bytes -= got;
    left_ -= got;
  }
}

void ZipMember::skip(std::int64_t bytes) {
  if (!verifies_ && is_stored_) {
    if (bytes > left_) fail(fmt::format("the data end {} bytes too early", bytes - left_));
    if (zip_fseek(file_, bytes, SEEK_CUR) != 0) fail(zip_file_strerror(file_));
    left_ -= bytes;
    return;
  }
  std::vector<char> discarded(static_cast<std::size_t>(std::min<std::int64_t>(bytes, 1 << 20)));
  while (bytes > 0) {
    const auto step = std::min<std::int64_t>(bytes, static_cast<std::int64_t>(discarded.size()));
    read(discarded.data(), step);
    bytes -= step;
  }
}

void ZipMember::finish() {
  if (!verifies_) return;
  skip(left_);
  char beyond = 0;  // libzip compares the checksum when it meets the end
  const auto got = zip_fread(file_, &beyond, 1);
  if (got < 0) fail(zip_file_strerror(file_));
  if (got > 0) fail("the data are longer than the archive's directory says");
}

ZipArchive::ZipArchive(std::filesystem::path path, Checksums checksums)
    : path_(std::move(path)), checksums_(checksums), archive_(nullptr), file_bytes_(size_of_existing(path_)) {
  archive_ = open_archive(path_);
  const auto count = zip_get_num_entries(archive_, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive_, static_cast<zip_uint64_t>(i), 0, &stat) != 0) continue;
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if ((stat.valid & needed) != needed || stat.size > std::numeric_limits<std::int64_t>::max()) continue;
    entries_.push_back({stat.name, static_cast<std::uint64_t>(i), static_cast<std::int64_t>(stat.size)});
  }
}

ZipArchive::~ZipArchive() {
  if (archive_ != nullptr) zip_discard(archive_);
}

std::unique_ptr<ArchiveMember> ZipArchive::open(const ArchiveEntry& entry, std::string where) const {
  zip_stat_t stat;
  const auto refuse = [&](const std::string& what) { throw FileError(fmt::format("{}: {}; {}", where, what, remedy)); };
  if (zip_stat_index(archive_, entry.index, 0, &stat) != 0) refuse(zip_strerror(archive_));
  if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && stat.encryption_method != ZIP_EM_NONE) {
    refuse("it is encrypted, or the archive's directory is damaged");
  }
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
    refuse(fmt::format("compression method {}; stored and deflated arrays can be read", stat.comp_method));
  }
  // Deflate never packs more than 1032 to 1: a directory that promises more is damaged, and memory is not asked for.
  const auto packed = static_cast<double>(stat.comp_size);
  const auto most = stat.comp_method == ZIP_CM_STORE ? packed : 1040.0 * packed + 1024.0;
  if (packed > static_cast<double>(file_bytes_) || static_cast<double>(stat.size) > most) {
    refuse(fmt::format("the archive's directory promises {} bytes from {} packed ones in a file of {}; it is damaged", stat.size,
                       stat.comp_size, file_bytes_));
  }
  zip_file* file = zip_fopen_index(archive_, entry.index, 0);
  if (file == nullptr) refuse(zip_strerror(archive_));
  return std::make_unique<ZipMember>(file, std::move(where), entry.bytes, checksums_, stat.comp_method == ZIP_CM_STORE);
}

std::string libzip_version() { return zip_libzip_version(); }

}  // namespace mpol::io
