#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mpol::io {

/// One file among those of an archive.
struct ArchiveEntry {
  std::string name;
  std::uint64_t index = 0;
  std::int64_t bytes = 0;  ///< when unpacked
};

/// Sequential bytes of one entry.
class ArchiveMember {
 public:
  explicit ArchiveMember(std::string where) : where_(std::move(where)) {}
  virtual ~ArchiveMember() = default;
  ArchiveMember(const ArchiveMember&) = delete;
  ArchiveMember& operator=(const ArchiveMember&) = delete;

  /// Reads exactly `bytes` bytes. @throws FileError when it is damaged or ends before
  virtual void read(void* destination, std::int64_t bytes) = 0;
  virtual void skip(std::int64_t bytes) = 0;
  /// To be called when what is wanted was read: verifies the checksum where there is one that is compared. @throws FileError when
  /// it is another
  virtual void finish() = 0;
  /// How messages name it.
  const std::string& where() const { return where_; }

 private:
  std::string where_;
};

/// Files together that hold one array each: a .npz archive, or a folder.
class ArrayArchive {
 public:
  virtual ~ArrayArchive() = default;

  virtual const std::vector<ArchiveEntry>& entries() const = 0;
  virtual const std::filesystem::path& path() const = 0;
  /// Bytes of all entries as they lie on disk.
  virtual std::int64_t file_bytes() const = 0;
  /// @param where  how messages name the entry
  /// @throws FileError for an entry that cannot be read
  virtual std::unique_ptr<ArchiveMember> open(const ArchiveEntry& entry, std::string where) const = 0;
};

}  // namespace mpol::io
