#pragma once

#include <cstdint>
#include <optional>

#include <torch/types.h>

#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/proximal/dual_ascent.h>
#include <mpol_cpp/ops/proximal/gpu/tv_dual_arrays.h>

namespace mpol::ops {

using torch::Tensor;

/// The proximal map of total variation and positivity on a GPU (solvers/tv_proximal.h has the equations), where TvDual is the
/// CPU's: a pass is one kernel, in which a block holds all that it needs of its tile, from the dual images read to the dual image
/// written, and works the momentum out of what the blocks of the pass before said. Nothing waits for the device, and nothing is
/// allocated but where more passes are asked for than ever before: a CUDA graph can hold it. Sums have a fixed order.
class GpuTvDual {
 public:
  /// @param like  (problems, nchan, npix, npix), float32 or float64, on a GPU; on the CPU the kernels are emulated, which is slow
  /// @throws ValueError for another dtype, or more pixels or images than kernels count
  GpuTvDual(const Tensor& like, bool hann, std::optional<TvDualCut> cut = {}, EmulatedOrder order = EmulatedOrder::ascending);

  /// Puts all passes into the current stream.
  /// @param q        (problems, nchan, npix, npix), contiguous
  /// @param mask     1 or 0, like q, contiguous; undefined: all may shine
  /// @param weights     k of each image, >= 0, float64, on the device
  /// @param x           like q, another tensor; overwritten
  /// @param thresholds  like weights: by which pixels of either sign go towards 0; undefined: none is negative
  void apply(const Tensor& q, const Tensor& mask, const Tensor& weights, const DevicePasses& passes, const Tensor& x,
             const Tensor& thresholds = {});

  /// The dual image (2, problems, nchan, npix, npix) of the last call; zeros before the first. What is written there is where the
  /// next call begins.
  const Tensor& dual() const { return dual_; }

 private:
  template <typename T>
  void run(const Tensor& q, const Tensor& mask, const Tensor& weights, const DevicePasses& passes, const Tensor& x,
           const Tensor& thresholds);

  TvDualCut cut_;
  EmulatedOrder order_;
  bool hann_;
  Tensor dual_, ring_[3];  // p' of passes goes through the ring
  Tensor block_turns_;     // (2, problems, blocks of a problem) float64: of even passes and of odd ones
  Tensor group_turns_;     // (2, problems, turn_groups), where there are so many blocks
  Tensor t_;               // (most passes, problems) float64
};

}  // namespace mpol::ops
