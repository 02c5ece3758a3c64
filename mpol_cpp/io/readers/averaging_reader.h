#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/io/readers/visibility_reader.h>

namespace mpol::io {

/// How samples are averaged while they are read.
struct AveragingOptions {
  /// The longest time that one sample comes from, s; 0: rows stay as they are.
  TORCH_ARG(double, seconds) = 0;
  /// Channels of a window that become one; 1: they stay as they are. The last ones may be fewer.
  TORCH_ARG(std::int64_t, channels) = 1;
};

/// What averaging costs a source off the phase centre, whose phase turns within what becomes one sample.
struct AveragingCost {
  double seconds = 0;         ///< that one sample comes from at most
  double longest = 0;         ///< baseline, wavelengths
  std::int64_t channels = 1;  ///< that became one
  double relative_width = 0;  ///< of the widest of them before, its width over its frequency; 0: unknown

  /// Part of its amplitude that a source at that distance, arcsec, from the phase centre loses on the longest baseline at most:
  /// the sky's turn at its fastest, sin(x)/x with x = pi q theta omega T, times sin(N y)/(N sin y), y = pi q theta width, of N
  /// channels.
  double loss(double offset) const;
  /// The distance, arcsec, at which that is a given part; infinity where it is nowhere.
  double offset_of(double loss) const;
};

/// The samples of another reader, averaged in time and channel, weighted by their weights, which add up; flagged samples take no
/// part. u and v are the means of the rows', weighted by the sums of their weights; frequencies those of all channels that a
/// group may hold, in equal shares.
///
/// One sample comes from one pair of antennas in one window, scan, field and observation, never across a gap (a step in time of
/// more than twice the smallest of the pair) or a step back, nor across channels that were left out.
class AveragingReader final : public VisibilityReader {
 public:
  /// @throws ValueError unless seconds is finite and >= 0 and channels >= 1; DataError for seconds > 0 where times are unknown
  AveragingReader(std::unique_ptr<VisibilityReader> reader, const AveragingOptions& options);

  const ReaderShape& shape() const override { return shape_; }
  std::optional<RowBlock> next() override;
  const DroppedSamples& dropped() const override { return reader_->dropped(); }

  const AveragingCost& cost() const { return cost_; }  ///< of what was read so far

 private:
  using Key = std::array<std::int64_t, 6>;  // window and track

  /// Rows that become one.
  struct Bin {
    std::vector<c10::complex<double>> sums;  // of weight times data, of each group of channels
    std::vector<double> weights;
    double u = 0, v = 0, weight = 0;  // sums over rows and channels
    double first = 0, last = 0;       // times
    double smallest_step = 0;         // of the track; 0: not known yet
    std::int32_t observation = -1;
    bool has_time = false;
    bool open = false, seen = false;  // it has rows; the track had some
  };
  /// Rows that are ready to be given.
  struct Ready {
    std::vector<double> u, v;
    std::vector<c10::complex<float>> data;
    std::vector<float> weights;
    std::vector<std::int32_t> observations;
    std::vector<double> times;  // of the middle; none where they are unknown
  };

  void group_channels(std::size_t window, std::int64_t most);
  void take(const RowBlock& block);
  void add_row(Bin& bin, std::size_t window, double u, double v, const c10::complex<float>* data, const float* weights);
  void close(Bin& bin, std::size_t window);
  std::optional<RowBlock> give(std::size_t fewest);

  std::unique_ptr<VisibilityReader> reader_;
  AveragingOptions options_;
  ReaderShape shape_;
  AveragingCost cost_;
  std::vector<std::vector<std::size_t>> groups_;  // of each channel of each window
  std::map<Key, Bin> bins_;
  std::vector<Ready> ready_;
  bool ended_ = false;
};

}  // namespace mpol::io
