#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol {

/// A training run at rest, in one safetensors file that Python's `safetensors` reads too.
///
/// Tensors: `state.model.NAME`, `state.likelihood.NAME`, `state.likelihood_state.NAME`, `state.optimizer.NAME`,
/// `state.random.cpu`, and `history` (rows, 1 + columns) float64: learning rate, then the columns, of the newest epochs.
/// Metadata: `format`, `format_version`, `epochs`, `columns`, `step`, `written_by`, `setting.NAME` for every setting that decides
/// the result, `note.NAME` for what else the run says of itself, and, of a run of more than LossHistory::block_rows epochs,
/// `history_files`: names, joined by "/", of the files beside it that hold the epochs before (history_files.h).
struct Checkpoint {
  std::int64_t epochs = 0;                 ///< done
  std::string step;                        ///< the kind of step taken, for information
  NamedTensors state;                      ///< tensors, by the names above without `state.`
  std::vector<std::string> columns;        ///< of the history: total, nll, terms…
  LossHistory history;                     ///< one row per epoch done
  std::vector<std::string> history_files;  ///< where its first complete blocks lie already
  Metadata settings;                       ///< what decides the result, compared where a run is resumed
  Metadata notes;                          ///< TrainOptions::notes
  std::filesystem::path read_from;         ///< the file it was read from; not stored
};

/// Where the checkpoint before the one at `path` is kept: checkpoint.safetensors -> checkpoint.previous.safetensors.
std::filesystem::path previous_checkpoint(const std::filesystem::path& path);

/// Removes what a process that was killed while it wrote a checkpoint may have left beside it. For a caller who knows that
/// no other process writes there.
void remove_checkpoint_leftovers(const std::filesystem::path& path);

/// What becomes of the file that is at the path of a new checkpoint.
enum class Existing {
  keep_as_previous,  ///< as Checkpoint says: previous_checkpoint()
  replace,           ///< it is known to be damaged: the previous one stays
};

/// Writes a checkpoint. What was at `path` becomes the previous one, if it is worth keeping; at every moment, also when the
/// process is killed or the disk is full, a complete checkpoint is there if one was before.
/// @throws FileError
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                      Existing existing = Existing::keep_as_previous);

/// Reads the checkpoint at `path`, or, when that one is missing or damaged, the previous one, and says so.
/// @return  nothing when neither file exists
/// @throws FileError when there are files but none can be read
std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path, torch::Device device = torch::kCPU);

/// What a checkpoint says of its run, without its state. The newest whose header can be read.
struct CheckpointHeader {
  Metadata settings, notes;  ///< as in Checkpoint
  std::int64_t epochs = 0;   ///< as in Checkpoint
};
/// @return  nothing when neither file exists or can be read
std::optional<CheckpointHeader> read_checkpoint_header(const std::filesystem::path& path);

/// @throws FileError when the checkpoint is of a run with other settings: the message names the first that differs, with
///         both values
void check_same_run(const std::filesystem::path& path, const Metadata& saved, const Metadata& present);

}  // namespace mpol
