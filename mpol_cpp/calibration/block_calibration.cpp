#include <mpol_cpp/calibration/block_calibration.h>

#include <cmath>
#include <utility>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/calibration/gain_steps.h>
#include <mpol_cpp/calibration/saved_rounds.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// The rounds, and what is kept of them.
class Rounds {
 public:
  Rounds(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels, const SampleBlocks& blocks,
         CalibrationImager& imager, const BlockCalibrationOptions& options)
      : coords_(coords),
        visibilities_(visibilities),
        channels_(channels),
        blocks_(blocks),
        imager_(imager),
        options_(options),
        gains_(static_cast<std::size_t>(blocks.size())) {}

  BlockCalibration run() {
    load();
    take_rounds(found_, options_.rounds(), [this] { return take_round(); });
    return std::move(found_);
  }

 private:
  /// @return whether the round came to its end
  bool take_round() {
    const auto sky = imager_.image_of(calibrated(visibilities_, blocks_, gains_, options_.room()));
    if (!sky.defined()) return false;
    found_.blocks = fit_gains(coords_, sky, visibilities_, channels_, blocks_, options_.kinds(), gains_);
    ++found_.rounds;
    const auto before = detail::numbers_of(gains_), after = detail::numbers_of(found_.gains());
    const auto errors = detail::errors_of(found_.blocks);
    const auto changes = ((after - before) / errors).abs();
    found_.change = changes.max().item<double>();
    found_.converged = found_.change <= options_.tolerance();
    steps_.add(before, after);
    gains_ = found_.converged ? found_.gains() : detail::gains_of(steps_.next(errors));
    save();
    if (options_.on_round())
      options_.on_round()({found_.rounds, found_.blocks, found_.change, changes.argmax().item<std::int64_t>() / 4, score()});
    return true;
  }

  double score() const {
    double sum = 0, samples = 0;
    for (const auto& block : found_.blocks) sum += block.chi_squared, samples += block.samples;
    return sum / (2 * samples);
  }

  void save() const {
    if (options_.state().empty()) return;
    std::vector<double> fits;
    for (const auto& [gain, error, chi_squared, samples, shared, significance] : found_.blocks) {
      fits.insert(fits.end(), {gain.east, gain.north, gain.amplitude, gain.weight_scale, error.east, error.north, error.amplitude,
                               error.weight_scale, chi_squared, samples, shared, significance});
    }
    const auto progress = std::vector<double>{static_cast<double>(found_.rounds), found_.change, found_.converged ? 1.0 : 0.0};
    std::vector<double> next;  // as they are, since logarithms and back would alter last bits
    for (const auto& gain : gains_) next.insert(next.end(), {gain.east, gain.north, gain.amplitude, gain.weight_scale});
    const NamedTensors tensors = {{"gains", at::tensor(next, torch::kFloat64)},
                                  {"from", steps_.from},
                                  {"to", steps_.to},
                                  {"blocks", at::tensor(fits, torch::kFloat64)},
                                  {"progress", at::tensor(progress, torch::kFloat64)}};
    write_rounds(options_.state(), {tensors, imager_.state()}, options_.fingerprint());
  }

  void load() {
    if (options_.state().empty()) return;
    const auto saved = read_rounds(options_.state(), options_.fingerprint());
    if (!saved) return;
    const auto find = [&](const std::string& name) {
      const auto found = saved->tensors.find(name);
      if (found == saved->tensors.end()) throw FileError(fmt::format("{} has no {}", options_.state().string(), name));
      return found->second.contiguous();
    };
    const auto gains = find("gains"), fits = find("blocks"), progress = find("progress");
    const auto count = blocks_.size();
    steps_.from = find("from"), steps_.to = find("to");
    const bool fine = gains.numel() == 4 * count && fits.numel() == 12 * count && progress.numel() == 3 &&
                      steps_.from.dim() == 2 && steps_.from.sizes() == steps_.to.sizes() && steps_.from.size(1) == 4 * count;
    if (!fine) throw FileError(fmt::format("{} does not fit this calibration", options_.state().string()));
    const auto* at = fits.const_data_ptr<double>();
    for (std::int64_t b = 0; b < count; ++b, at += 12)
      found_.blocks.push_back({{at[0], at[1], at[2], at[3]}, {at[4], at[5], at[6], at[7]}, at[8], at[9], at[10], at[11]});
    found_.rounds = static_cast<std::int64_t>(progress[0].item<double>());
    found_.change = progress[1].item<double>();
    found_.converged = progress[2].item<double>() != 0;
    const auto* next = gains.const_data_ptr<double>();
    for (auto& gain : gains_) gain = {next[0], next[1], next[2], next[3]}, next += 4;
    imager_.load_state(saved->of_imager);
  }

  const GridCoords& coords_;
  const Visibilities& visibilities_;
  const ChannelMap& channels_;
  const SampleBlocks& blocks_;
  CalibrationImager& imager_;
  const BlockCalibrationOptions& options_;
  std::vector<BlockGain> gains_;  // of the next round
  detail::GainSteps steps_;
  BlockCalibration found_;
};

}  // namespace

std::vector<BlockGain> BlockCalibration::gains() const {
  std::vector<BlockGain> gains;
  for (const auto& block : blocks) gains.push_back(block.gain);
  return gains;
}

BlockCalibration calibrate_blocks(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                  const SampleBlocks& blocks, CalibrationImager& imager, const BlockCalibrationOptions& options) {
  if (options.rounds() < 1) throw ValueError(fmt::format("rounds is {}; it must be at least 1", options.rounds()));
  if (!(options.tolerance() > 0)) throw ValueError(fmt::format("tolerance is {}; it must be > 0", options.tolerance()));
  return Rounds(coords, visibilities, channels, blocks, imager, options).run();
}

}  // namespace mpol
