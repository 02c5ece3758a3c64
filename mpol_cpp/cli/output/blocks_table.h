#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <mpol_cpp/calibration/block_calibration.h>

namespace mpol::cli {

/// The blocks of data of a run with --fit-blocks, and what was fitted of them.
struct CalibratedBlocks {
  SampleBlocks samples;
  GainKinds kinds;
  BlockCalibration found;
  std::optional<double> change_at_end;  ///< by which the gains would change with the final image, in their errors
};

/// "shift,amplitude": the words of a list. @throws UsageError for another, one twice, or none
GainKinds parse_gain_kinds(const std::string& list);

/// blocks.csv: a line for each block, numbers with 17 digits, `inf` for errors of gains that nothing tells.
std::string blocks_csv(const CalibratedBlocks& blocks);
/// What summary.json says of them.
nlohmann::ordered_json blocks_json(const CalibratedBlocks& blocks);
/// A block's gain in one line: "window 3: shift (+0.0012 ± 0.0001, …)″, amplitude …".
std::string gain_words(const CalibratedBlocks& blocks, std::size_t block);
/// What is doubtful about them, in words.
std::vector<std::string> blocks_warnings(const CalibratedBlocks& blocks);

/// Gains by the names of their blocks, in the order of the file.
struct NamedGains {
  std::vector<std::string> names;
  std::vector<BlockGain> gains;

  std::string kinds() const;  ///< of the blocks, as --blocks names them, by the words of the names: "window,file"
  /// Those of blocks of data, by their names. @throws DataError naming one that the file has not
  std::vector<BlockGain> of(const SampleBlocks& blocks) const;
};
/// @throws FileError, DataError for what is no blocks.csv, naming the line
NamedGains read_blocks_csv(const std::filesystem::path& path);

}  // namespace mpol::cli
