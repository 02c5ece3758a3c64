#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <mpol_cpp/io/archives/array_archive.h>
#include <mpol_cpp/io/archives/checksums.h>

// libzip's handles; only zip_archive.cpp and npz_archive.cpp see its header.
struct zip;
struct zip_file;

namespace mpol::io {

/// Sequential bytes of one entry, unpacked on the way; its checksum is verified by finish(), unless it is ignored. What is
/// skipped of a stored entry is then not read.
class ZipMember final : public ArchiveMember {
 public:
  ZipMember(zip_file* file, std::string where, std::int64_t bytes, Checksums checksums, bool is_stored);
  ~ZipMember() override;

  void read(void* destination, std::int64_t bytes) override;
  void skip(std::int64_t bytes) override;
  /// Reads what is left and verifies the checksum, where it counts. @throws FileError when it does not match
  void finish() override;

 private:
  [[noreturn]] void fail(std::string_view what) const;

  zip_file* file_;
  std::int64_t left_;
  bool verifies_, is_stored_;
};

/// A zip archive opened for reading: stored and deflated entries, zip64.
class ZipArchive final : public ArrayArchive {
 public:
  /// @throws FileError when the file is missing, empty, unreadable, truncated or no zip archive
  explicit ZipArchive(std::filesystem::path path, Checksums checksums = Checksums::compared);
  ~ZipArchive() override;
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  const std::vector<ArchiveEntry>& entries() const override { return entries_; }
  const std::filesystem::path& path() const override { return path_; }
  std::int64_t file_bytes() const override { return file_bytes_; }
  /// @throws FileError for an encrypted entry, another compression method, or a size that its packed bytes cannot hold
  std::unique_ptr<ArchiveMember> open(const ArchiveEntry& entry, std::string where) const override;

 private:
  std::filesystem::path path_;
  Checksums checksums_;
  zip* archive_ = nullptr;
  std::int64_t file_bytes_ = 0;
  std::vector<ArchiveEntry> entries_;
};

/// The version of libzip that is loaded.
std::string libzip_version();

}  // namespace mpol::io
