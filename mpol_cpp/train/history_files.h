#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <mpol_cpp/train/options/loss_history.h>

namespace mpol::detail {

/// Complete blocks of a long history lie in files of their own beside the checkpoint, so that a checkpoint grows no more
/// after LossHistory::block_rows epochs. Such a file is written before the first checkpoint that names it and never again:
/// the name says which block it is and what it holds (the beginning of its SHA-256), so that neither a kill between the
/// two nor another run in the folder can put other epochs in its place.
///
///   checkpoint.safetensors -> checkpoint.history-000000-0123456789abcdef.safetensors
///
/// with one tensor `history` (block_rows, 1 + columns) float64, as the checkpoint's own.

/// Writes block number `block` and returns the file's name. @throws FileError
std::string write_history_block(const std::filesystem::path& checkpoint, const LossHistory& history, std::size_t block);

/// Appends the block in the file of that name. @throws FileError when it is missing, damaged, or not what its name says
void read_history_block(const std::filesystem::path& checkpoint, const std::string& name, std::size_t columns,
                        LossHistory& history);

/// Removes what other runs with this path left of theirs: the files with such names but these.
void remove_other_history_blocks(const std::filesystem::path& checkpoint, const std::vector<std::string>& kept);

/// Whether a file beside a checkpoint of that path has the name of such a block.
bool is_history_block(const std::filesystem::path& checkpoint, const std::string& name);

}  // namespace mpol::detail
