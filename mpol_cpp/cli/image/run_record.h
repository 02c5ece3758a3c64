#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/output/file_digest.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/distributed/communicator.h>

namespace mpol::cli {

/// What a run is: its settings as run.toml holds them, and the digests of the files it reads.
class RunRecord {
 public:
  /// Reads mask and start image for their SHA-256; of the data see digest_data().
  /// @param settings  with what the program chose (device, threads, step) in place of "auto"
  /// @throws FileError; UsageError for a name that run.toml cannot hold
  RunRecord(const std::vector<RecordedSetting>& settings, const ImageOptions& image);

  /// Begins to read the data once for their digest, beside whoever reads them to make the image.
  void digest_data();
  /// The same of this rank's share of them. @param threads  of the rank
  void digest_share(const Communicator& ranks, std::int64_t threads);
  /// The digest of which each rank has found a share, on the first. @throws FileError when this rank could not read its own
  void gather_digest(Communicator& ranks);

  /// run.toml: table `image` repeats the run, table `record` says what was run.
  /// @param files  what the run wrote, within OUT
  std::string toml(std::int64_t epochs_done, const std::string& stop_reason, const std::vector<std::string>& files) const;
  /// Table `image` alone.
  std::string settings_toml() const;

  /// "name = value" of everything that alters the result, digests in the place of paths: what a checkpoint is compared
  /// with.
  std::vector<std::string> fingerprint() const;

  /// "name = value" of every setting, as in run.toml.
  std::vector<std::string> settings() const;
  /// "name = value" of the settings that say what an image is: those that alter the result, the epochs and the device.
  /// Runs with the same ones write the same image files, byte for byte.
  std::vector<std::string> image_history() const;

  /// A lambda that no option gave as a number, which run.toml and the images' HISTORY then say beside the setting.
  /// @param term  its name in history.csv
  void note_lambda(const std::string& term, double lambda, std::optional<double> units, const std::string& how);

  /// A line that the images' HISTORY says besides.
  void note(std::string line) { notes_.push_back(std::move(line)); }

  /// Waits for the thread. @throws FileError when it could not read the data
  const std::string& data_digest() const { return data_digest_.get(); }
  /// What another rank has found.
  void set_data_digest(std::string digest);
  /// Whether digest_data() was called, or what it finds is known.
  bool knows_data() const { return data_digest_.valid(); }

 private:
  std::vector<RecordedSetting> settings_;
  struct Lambda {
    double value;
    std::optional<double> units;  // of noise
    std::string how;

    std::string words() const;
  };
  std::map<std::string, Lambda> lambdas_;  // by the name of the setting
  std::vector<std::string> notes_;
  std::vector<std::filesystem::path> data_;  // files and folders
  std::shared_ptr<const FileDigest> digest_;
  std::shared_future<std::string> data_digest_;
  std::shared_future<torch::Tensor> digest_share_;
  std::string mask_digest_, start_digest_;
};

/// True when OUT holds every result of this very run, with at least the epochs asked for, or stopped by its criterion.
/// OutputFolder sees to it that run.toml is there only while all results are of one piece; that files were removed since is
/// seen from its list of them.
bool is_finished(const std::filesystem::path& out, const RunRecord& record, std::int64_t epochs);

/// What the earlier run in OUT wrote, within OUT, by its run.toml, also when that has been withdrawn; empty without one.
std::vector<std::string> earlier_files(const std::filesystem::path& out);

/// A warning when the data are not those that a run.toml given as --config was made from.
std::optional<std::string> changed_data(const std::filesystem::path& config, const std::string& data_digest);

}  // namespace mpol::cli
