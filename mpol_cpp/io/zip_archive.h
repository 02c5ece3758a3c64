#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// libzip's handles; only zip_archive.cpp and npz_archive.cpp see its header.
struct zip;
struct zip_file;

namespace mpol::io {

/// One entry of a zip archive.
struct ZipEntry {
  std::string name;
  std::uint64_t index = 0;
  std::int64_t bytes = 0;  ///< when unpacked
};

/// Sequential bytes of one entry, unpacked on the way; its checksum is verified by finish().
class ZipMember {
 public:
  ZipMember(zip_file* file, std::string where, std::int64_t bytes);
  ~ZipMember();
  ZipMember(const ZipMember&) = delete;
  ZipMember& operator=(const ZipMember&) = delete;

  /// Reads exactly `bytes` bytes. @throws FileError when the archive is damaged or ends before
  void read(void* destination, std::int64_t bytes);
  void skip(std::int64_t bytes);
  /// Reads what is left and verifies the checksum. @throws FileError when it does not match
  void finish();
  const std::string& where() const { return where_; }

 private:
  [[noreturn]] void fail(std::string_view what) const;

  zip_file* file_;
  std::string where_;
  std::int64_t left_;
};

/// A zip archive opened for reading: stored and deflated entries, zip64.
class ZipArchive {
 public:
  /// @throws FileError when the file is missing, empty, unreadable, truncated or no zip archive
  explicit ZipArchive(std::filesystem::path path);
  ~ZipArchive();
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  const std::vector<ZipEntry>& entries() const { return entries_; }
  const std::filesystem::path& path() const { return path_; }
  std::int64_t file_bytes() const { return file_bytes_; }
  /// @param where  how messages name the entry
  /// @throws FileError for an encrypted entry, another compression method, or a size that its packed bytes cannot hold
  std::unique_ptr<ZipMember> open(const ZipEntry& entry, std::string where) const;

 private:
  std::filesystem::path path_;
  zip* archive_ = nullptr;
  std::int64_t file_bytes_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace mpol::io
