#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>
#include <mpol_cpp/visibilities/sample_blocks.h>
#include <mpol_cpp/visibilities/sample_range.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

using torch::Tensor;

/// Where the samples of the data come from, as far as their files say; filled while they are read.
struct DataOrigins {
  bool with_times = false;  ///< times are wanted
  /// (1 or nchan, nvis) int64 each; undefined: the files do not say.
  Tensor windows, observations, files, channels;
  Tensor times;  ///< (1 or nchan, nvis) float64, s from any moment; undefined: not wanted, or the files do not say
};

/// Those of a set's samples.
DataOrigins origins_of(const io::CollectedVisibilities& read);
/// Those of arrays: the keys `block` (spectral windows), `observation` and `time`, as mpol export writes them, where they are
/// there.
/// @throws DataError for a key that is not (nvis) numbers
DataOrigins origins_of(const io::NpzReader& arrays, std::int64_t nvis, bool with_times);
/// Those of the samples of several files as join_samples() orders them, of one as they are: with the numbers of files and
/// channels. What one file does not say is unknown of all.
DataOrigins joined_origins(const std::vector<DataOrigins>& files, const std::vector<Visibilities>& visibilities);

/// `--blocks`. @param applies  where it has a meaning, once all is parsed
void declare_blocks(OptionSet& options, std::string& blocks, const std::string& condition, const std::function<bool()>& applies);

/// By what blocks of data are told apart.
enum class BlockKind { window, observation, time, file, channel };

/// Those of a list of their words. @throws UsageError for another, or one twice
std::vector<BlockKind> parse_block_kinds(const std::string& list);

/// Blocks of data as --blocks names them: of several kinds those that all of them tell apart. Empty: of windows, observations and
/// files those of which there are several.
/// @param stretches  how many of `time`, which are stretches of samples in their order where times are not known
/// @throws DataError where the files do not say what is asked for
SampleBlocks blocks_of(const DataOrigins& origins, const std::string& kinds, std::int64_t stretches);

/// Spectral windows of files, as their samples lie behind each other once the files are read and joined.
class DataParts {
 public:
  /// Notes what a file holds, and forgets all of a reading before when it is the first. @param ranges  none: the file is one part
  void note(std::size_t file, const std::string& name, const std::vector<io::WindowRange>& ranges,
            const Visibilities& visibilities);
  /// The parts, where there are several and they make up `samples` of each channel; else none.
  std::vector<SampleRange> ranges(std::int64_t samples) const;

 private:
  struct File {
    std::string name;
    std::vector<io::WindowRange> ranges;
    std::int64_t nchan, nvis;
    Tensor frequencies;  // (nchan) Hz, or undefined
  };
  std::vector<File> files_;
};

/// Stretches of samples of one number each, as the key `block` of arrays has them; none where it is not there, has another form,
/// or goes to and fro more than 4096 times. @throws FileError where it is damaged
std::vector<io::WindowRange> window_ranges(const io::NpzReader& arrays, std::int64_t nvis);

}  // namespace mpol::cli
