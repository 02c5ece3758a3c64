#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace mpol {

/// A file that appears under its name complete or not at all.
///
/// What is written goes to a temporary in the same folder; commit() flushes it to disk, renames it over the final name
/// and flushes the folder. Without commit() (an exception, an early return) the temporary is removed and a file that was
/// there before stays as it was. Text and binary; every writer of the library uses it.
class AtomicFile {
 public:
  /// Creates the temporary. @throws FileError, with the system's reason and a remedy, when the folder is missing or not
  /// writable, or when `path` is a folder or anything else than a regular file
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// For libraries that write by name: they may write to this path, replace it or remove and create it, before commit().
  const std::filesystem::path& temporary_path() const { return temporary_; }

  /// Appends bytes. @throws FileError when the disk is full or fails
  void write(const void* bytes, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// Makes the file appear under its name. @throws FileError; the temporary is then removed
  void commit();

 private:
  void flush();
  void discard() noexcept;
  [[noreturn]] void fail(int error, std::string_view doing) const;

  std::filesystem::path path_, temporary_;
  std::string pending_;
  int descriptor_ = -1;
  bool committed_ = false;
};

/// Writes `contents` as the whole of a file, atomically. @throws FileError
void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

/// "cannot write PATH: reason; remedy" for an errno value: the words that every writer uses.
std::string cannot_write(const std::filesystem::path& path, int error);

}  // namespace mpol
