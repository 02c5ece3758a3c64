#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Where the visibilities were sampled: u, v in wavelengths, or in metres with the frequencies of the channels, so
/// that nchan channels do not cost nchan copies. Kept on the host in the dtype it came in; widened to float64 block by block.
class Baselines {
 public:
  /// u, v in wavelengths, (nvis) shared by all channels or (nchan, nvis), float32 or float64.
  /// @throws ShapeError, DataError (not finite)
  static Baselines in_lambda(Tensor u, Tensor v);
  /// u, v in metres, (nvis); frequencies in Hz, (nchan), > 0.
  static Baselines in_metres(Tensor u, Tensor v, Tensor frequencies);

  std::int64_t nvis() const;  ///< samples of one channel
  /// Channels that the baselines themselves distinguish: 1 when shared by all channels.
  std::int64_t nchan() const;
  /// True when every channel has the same u, v in wavelengths.
  bool shared() const;

  /// u and v of samples [begin, end) of a channel in wavelengths, two float64 (end - begin).
  std::pair<Tensor, Tensor> block(std::int64_t channel, std::int64_t begin, std::int64_t end) const;
  /// The same written to two float64 (end - begin) on the CPU.
  void write_block(std::int64_t channel, std::int64_t begin, std::int64_t end, const Tensor& u, const Tensor& v) const;
  /// The same of the samples with these indices, (n) int64. @throws ValueError for a channel that is not there
  std::pair<Tensor, Tensor> pick(std::int64_t channel, const Tensor& indices) const;
  /// u and v of all samples of a channel in wavelengths, two float64 (nvis).
  std::pair<Tensor, Tensor> channel(std::int64_t channel) const { return block(channel, 0, nvis()); }

  /// u and v of every channel in wavelengths, two float64 (nchan, nvis) on the CPU, or (1, nvis) where channels share them.
  std::pair<Tensor, Tensor> stacked() const;

  /// What the stored u and v of a channel are multiplied by: wavelengths in a metre, or 1.
  double wavelengths_per_unit(std::int64_t channel) const;

  /// Largest |u|, largest |v| over all channels (wavelengths), computed once.
  double max_abs_u() const { return max_abs_u_; }
  double max_abs_v() const { return max_abs_v_; }  ///< as max_abs_u()

  /// SHA-256 of the stored arrays: the same for the same baselines, also after they were written and read.
  std::string digest() const;

  /// Baselines of the given samples, 0-based, in that order. @param samples  (n) int64, n >= 1
  /// @throws ShapeError; ValueError for a sample that is not there
  Baselines select(const Tensor& samples) const;
  /// Baselines of the given channels, in that order (storage shared where it can be).
  Baselines select_channels(const std::vector<std::int64_t>& channels) const;

  /// The stored arrays: (nvis) or (nchan, nvis), in metres when frequencies() is defined, else wavelengths.
  const Tensor& u() const { return u_; }
  const Tensor& v() const { return v_; }                      ///< as u()
  const Tensor& frequencies() const { return frequencies_; }  ///< (nchan) float64 Hz, or undefined
  std::int64_t memory_bytes() const;                          ///< of the stored arrays

 private:
  Baselines(Tensor u, Tensor v, Tensor frequencies);
  void check_channel(std::int64_t channel) const;
  void check_block(std::int64_t channel, std::int64_t begin, std::int64_t end) const;
  Tensor of_channel(const Tensor& stored, std::int64_t channel) const;
  Tensor in_wavelengths(const Tensor& stored, std::int64_t channel) const;

  Tensor u_, v_, frequencies_;
  double max_abs_u_ = 0, max_abs_v_ = 0;
};

/// @throws ShapeError unless samples are (n) int64 on the CPU, n >= 1; ValueError for one that is not among nvis
void check_samples(const Tensor& samples, std::int64_t nvis);

}  // namespace mpol
