#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <mpol_cpp/cli/program/output_options.h>

namespace mpol::cli {

/// What a verb may find in its output folder.
enum class Existing {
  refuse,   ///< the folder must be new or empty
  replace,  ///< what the same verb wrote is replaced, each file by a rename at the end (--overwrite)
  resume,   ///< a checkpoint is continued (--resume)
};

/// The folder OUT of a run: made when it is not there, locked against a second run, its files staged beside each other
/// and renamed to their final names together at the end. A run that fails leaves what was there.
///
/// Whoever is killed may leave a lock, staged files and temporaries; the next run that has the lock removes them. Files that
/// mpol did not write are never removed.
class OutputFolder {
 public:
  /// @param verb  whose results go there: those of another verb are not replaced, since part of them would stay
  /// @throws FileError when it is a file, holds something it may not, is locked by another
  ///         run, or cannot be written to
  OutputFolder(const std::filesystem::path& path, Existing existing, const std::string& verb);
  /// The folder of --out, in which --overwrite lets results be replaced.
  OutputFolder(const OutputOptions& output, const std::string& verb);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }

  /// Where a run keeps what it goes on from: OUT itself, or a folder in it while the results of an earlier run stay until
  /// this one has its own (--overwrite, and --resume of such a run).
  const std::filesystem::path& state() const { return state_; }
  bool keeps_earlier_results() const { return state_ != path_; }
  /// True when there is a checkpoint to go on from.
  bool has_checkpoint() const;

  /// Where a file is written before it gets its name.
  std::filesystem::path staged(const std::string& name);
  /// What is staged, as names within OUT, sorted.
  std::vector<std::string> staged_names() const;
  /// A file of an earlier run that has no successor is removed by commit(). @param name  within OUT
  void replaces(const std::string& name) { replaced_.push_back(name); }
  /// Renames every staged file to its final name, and what state() holds. What tells that a run is whole, summary.json and
  /// run.toml, is taken away before the first and appears after the last: see is_finished(). @throws FileError
  void commit();

  /// Removes what a killed run left, where it left something and no other run is there.
  static void remove_leftovers(const std::filesystem::path& path);

 private:
  void create();
  void lock();
  void clear_leftovers() const;
  void check_contents(Existing existing, const std::string& verb);
  void check_writable() const;
  void find_state(Existing existing);
  void check_targets(const std::vector<std::string>& names) const;
  void withdraw_records(const std::vector<std::string>& names) const;
  void remove_replaced(const std::vector<std::string>& names) const;
  void move_state() const;
  void move_group_states() const;
  void release() noexcept;

  std::filesystem::path path_, state_;
  std::filesystem::path first_created_;  ///< topmost folder that was made for this run; empty: none
  std::string found_;                    ///< something that was there; empty: nothing
  std::vector<std::string> replaced_;
  int lock_ = -1;
};

/// Ends a verb: summary.json is staged with the rest, all files get their names, and stdout says what the options ask for
/// (end_verb). @return the exit code
int commit_with_summary(OutputFolder& folder, const std::string& summary, const OutputOptions& output, const std::string& words);

}  // namespace mpol::cli
