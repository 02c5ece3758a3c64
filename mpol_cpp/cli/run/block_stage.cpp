#include <mpol_cpp/cli/run/block_stage.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/run/run_imager.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>

namespace mpol::cli {
namespace {

[[noreturn]] void refuse(const ImageOptions& options, const std::string& limit, const std::string& remedy) {
  throw UsageError(error_text("--fit-blocks", options.fit_blocks, limit, remedy));
}

std::string round_words(const CalibrationRound& round, const SampleBlocks& blocks) {
  return fmt::format(
      "gains, round {:>2}: chi^2/2N {:.5f} with the weights as they are; most changed: {}, by {:.2g} of its error\n", round.round,
      round.score, blocks.names[static_cast<std::size_t>(round.most_changed)], round.change);
}

}  // namespace

void check_fit_blocks(const ImageOptions& options) {
  if (options.fit_blocks.empty()) return;
  parse_gain_kinds(options.fit_blocks);
  if (options.likelihood_kind().of_cells)
    refuse(options, "cell averages mix the samples of blocks", "leave out --likelihood gridded: the exact one is as fast");
  if (!options.is_gaussian())
    refuse(options, "gains are fitted for Gaussian noise", "leave out --noise, or weigh the blocks with mpol weights first");
  if (options.batch_size) refuse(options, "gains need images of all data", "leave out --batch-size, or give --batch-size auto");
  if (!choose_optimizer(options).tolerance)
    refuse(options, "gains need images that have converged", "leave out --optimizer and --stop-relative, or take pogm");
  if (ranks()->size() > 1) refuse(options, "ranks share no gains", "start one process; its threads are all used");
  const auto kinds = parse_block_kinds(options.data.blocks);
  const auto has = [&](BlockKind kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  if (has(BlockKind::time))
    throw UsageError(error_text("--blocks", options.data.blocks, "stretches of time have no gains", "leave out time"));
  if (has(BlockKind::channel) && options.mode == ImageMode::cube) {
    throw UsageError(error_text("--blocks", options.data.blocks,
                                "a cube's channels show different skies, beside which gains mean nothing",
                                "leave out channel, or add --mode continuum"));
  }
}

SampleBlocks blocks_to_fit(const ImageOptions& options) {
  auto blocks = blocks_of(*options.data.origins, options.data.blocks, 1);
  if (blocks.size() >= 2) return blocks;
  throw DataError(
      error_text("--fit-blocks", options.fit_blocks,
                 fmt::format("the data have one block, {}, and gains are relative to each other", blocks.names.front()),
                 "join files with --more-data, or say what the blocks are: --blocks window, observation, file or channel"));
}

Choice blocks_choice(const ImageOptions& options) {
  const auto blocks = blocks_to_fit(options);
  return {"fit-blocks", options.fit_blocks, fmt::format("of {} blocks: {}", blocks.size(), fmt::join(blocks.names, "; "))};
}

CalibratedBlocks calibrate(const DataStage& stage, Visibilities& visibilities) {
  const auto& options = stage.options;
  CalibratedBlocks result{blocks_to_fit(options), parse_gain_kinds(options.fit_blocks), {}, {}};
  if (result.samples.indices.size(0) > 1 && options.mode != ImageMode::continuum)
    throw UsageError(
        error_text("--blocks", options.data.blocks, "a cube's channels show different skies", "add --mode continuum"));
  const auto bytes = static_cast<double>(visibilities.data().nbytes() + visibilities.weights().nbytes());
  const auto room = room_beside(visibilities, bytes);
  RunImager imager(stage, blocks_name);
  auto how = BlockCalibrationOptions()
                 .kinds(result.kinds)
                 .state(stage.state / blocks_name)
                 .fingerprint(stage.record.fingerprint())
                 .room(room);
  if (options.output.speaks())
    how.on_round([&](const CalibrationRound& round) { fmt::print("{}", round_words(round, result.samples)); });
  const auto channels = channel_map(options, visibilities.nchan());
  result.found = calibrate_blocks(stage.coords, visibilities, channels, result.samples, imager, how);
  if (result.found.interrupted) return result;
  visibilities = calibrated(visibilities, result.samples, result.found.gains(), room);
  for (std::size_t b = 0; b < result.found.blocks.size(); ++b) {
    const auto words = gain_words(result, b);
    if (options.output.speaks()) fmt::print("{}\n", words);
    stage.record.note("calibrated " + words);
  }
  return result;
}

void judge_blocks(CalibratedBlocks& blocks, const FitData& data, const Tensor& sky) {
  const std::vector<BlockGain> none(blocks.found.blocks.size());
  const auto rest = fit_gains(data.coords(), sky, data.visibilities, data.channels, blocks.samples, blocks.kinds, none);
  double most = 0;
  const auto compare = [&most](double change, double error) {
    if (error > 0 && std::isfinite(error)) most = std::max(most, std::abs(change) / error);
  };
  for (const auto& [gain, error, chi_squared, samples, shared, significance] : rest) {
    compare(gain.east, error.east);
    compare(gain.north, error.north);
    compare(gain.amplitude - 1, error.amplitude);
    compare(gain.weight_scale - 1, error.weight_scale);
  }
  blocks.change_at_end = most;
  for (const auto& warning : blocks_warnings(blocks)) log_warning(warning);
}

}  // namespace mpol::cli
