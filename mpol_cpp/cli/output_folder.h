#pragma once

#include <filesystem>
#include <string>

#include <mpol_cpp/cli/data_options.h>

namespace mpol::cli {

/// What a verb may find in its output folder.
enum class Existing {
  refuse,   ///< the folder must be new or empty
  replace,  ///< files that mpol writes are replaced, each by a rename at the end (--overwrite)
  resume,   ///< a checkpoint is continued (--resume)
};

/// The folder OUT of a run: made when it is not there, locked against a second run, its files staged beside each other
/// and renamed to their final names together at the end. A run that fails leaves what was there.
class OutputFolder {
 public:
  /// @throws FileError when it is a file, holds something it may not, is locked by another
  ///         run, or cannot be written to
  OutputFolder(const std::filesystem::path& path, Existing existing);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }

  /// Where a file is written before it gets its name.
  std::filesystem::path staged(const std::string& name);
  /// Renames every staged file to its final name. @throws FileError
  void commit();

 private:
  void create();
  void lock();
  void check_contents(Existing existing) const;
  void check_writable() const;
  void release() noexcept;

  std::filesystem::path path_;
  std::filesystem::path first_created_;  ///< topmost folder that was made for this run; empty: none
  int lock_ = -1;
};

/// Ends a verb: summary.json is staged with the rest, all files get their names, and stdout says what the options ask for:
/// the summary, `words`, or nothing.
void commit_with_summary(OutputFolder& folder, const std::string& summary, const OutputOptions& output, const std::string& words);

}  // namespace mpol::cli
