#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace mpol {

/// A file that appears under its name complete or not at all.
///
/// What is written goes to a temporary in the same folder; commit() flushes it to disk, renames it over the final name
/// and flushes the folder. Without commit() (an exception, an early return) the temporary is removed and a file that was
/// there before stays as it was. Text and binary; every writer of the library uses it.
///
/// A process that is killed leaves its temporary, `.NAME.PID-NUMBER.tmp`. Where process numbers repeat, as in containers, a
/// later one finds that name taken and takes the next.
class AtomicFile {
 public:
  /// Creates the temporary. @throws FileError, with the system's reason and a remedy, when the folder is missing or not
  /// writable, or when `path` is a folder or anything else than a regular file
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& path() const { return path_; }  ///< the final name
  /// For libraries that write by name: they may write to this path, replace it or remove and create it, before commit().
  const std::filesystem::path& temporary_path() const { return temporary_; }

  /// Appends bytes. @throws FileError when the disk is full or fails
  void write(const void* bytes, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }  ///< the same of text

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

/// The file that a temporary of AtomicFile stands for: "image.fits" for ".image.fits.12-3.tmp". Empty for any other name.
/// At most 100 bytes of the file's name are kept.
std::string name_of_temporary(std::string_view name);

/// Removes the temporaries in `folder` that killed writers of certain files left there; what cannot be removed stays. For a
/// caller who knows that nobody is writing these files now.
void remove_stale_temporaries(const std::filesystem::path& folder, const std::function<bool(const std::string&)>& is_one_of);

/// Flushes the names in a folder to disk, where the file system can. @returns false, with errno, when the disk fails
bool sync_folder(const std::filesystem::path& folder) noexcept;

/// Makes and removes a temporary beside `path`: for programs that compute for long before they write.
/// @throws FileError as AtomicFile
void check_can_write(const std::filesystem::path& path);

/// "cannot write PATH: reason; remedy" for an errno value: the words that every writer uses.
std::string cannot_write(const std::filesystem::path& path, int error);

}  // namespace mpol
