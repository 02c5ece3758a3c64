#pragma once

#include <filesystem>
#include <vector>

namespace mpol::cli {

// A run with --overwrite leaves the results in OUT as they are until it has its own: so long it keeps what it goes on from in
// OUT/.mpol.unfinished.

inline constexpr const char* unfinished_name = ".mpol.unfinished";
inline constexpr const char* checkpoint_name = "checkpoint.safetensors";
inline constexpr const char* group_states_name = "channels";  ///< a folder, with one for each further group of channels
inline constexpr const char* group_errors_name =
    "errors.safetensors";                                         ///< of a group of channels, where others are still to come
inline constexpr const char* scan_name = "scan.safetensors";      ///< what a cross-validation goes on from
inline constexpr const char* blocks_name = "blocks.safetensors";  ///< what a calibration of blocks goes on from
inline constexpr const char* points_name = "points.safetensors";  ///< what a fit of point sources goes on from

/// True when a checkpoint, the one before, a cross-validation, a calibration of blocks or a fit of point sources is in the
/// folder.
bool holds_checkpoint(const std::filesystem::path& folder);

/// The folders in which the groups of channels beside the first, which has that of the run, keep their checkpoints.
std::vector<std::filesystem::path> group_states(const std::filesystem::path& state);

/// Removes what a run in groups of channels keeps of their errors until it ends.
void remove_group_errors(const std::filesystem::path& state);

/// Where the newest run in OUT keeps its checkpoints: OUT/.mpol.unfinished when there is one, else OUT.
std::filesystem::path state_folder(const std::filesystem::path& out);

/// Where the run.toml of the results that are being replaced lies from the moment when they are no longer of one piece.
std::filesystem::path replaced_record(const std::filesystem::path& out);

/// Removes an unfinished run in OUT, but not the record of what it was replacing, unless OUT has a run.toml again.
void discard_unfinished(const std::filesystem::path& out);

}  // namespace mpol::cli
