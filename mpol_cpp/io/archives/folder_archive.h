#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/io/archives/array_archive.h>

namespace mpol::io {

/// True for a folder that holds .npy files, and no table of a measurement set.
bool is_array_folder(const std::filesystem::path& path);

/// A folder of .npy files, one array each, as numpy.save writes them. Folders in it are not looked into.
class FolderArchive final : public ArrayArchive {
 public:
  /// @throws FileError when it cannot be read or holds no .npy file
  explicit FolderArchive(std::filesystem::path path);

  const std::vector<ArchiveEntry>& entries() const override { return entries_; }  ///< by name
  const std::filesystem::path& path() const override { return path_; }
  std::int64_t file_bytes() const override { return file_bytes_; }
  std::unique_ptr<ArchiveMember> open(const ArchiveEntry& entry, std::string where) const override;

 private:
  std::filesystem::path path_;
  std::int64_t file_bytes_ = 0;
  std::vector<ArchiveEntry> entries_;
};

}  // namespace mpol::io
