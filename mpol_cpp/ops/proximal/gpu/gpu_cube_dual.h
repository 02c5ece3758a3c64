#pragma once

#include <cstdint>
#include <optional>

#include <torch/types.h>

#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/proximal/dual_ascent.h>
#include <mpol_cpp/ops/proximal/gpu/cube_dual_arrays.h>
#include <mpol_cpp/regularizers/base/cube_weights.h>

namespace mpol::ops {

using torch::Tensor;

/// The proximal map of total variation, differences from channel to channel, norms of spectra, curvature and positivity on a GPU
/// (solvers/cube_proximal.h has the equations), where CubeDual is the CPU's: a pass is two kernels, four for large images, and
/// one more where there are norms of spectra. Nothing waits for the device, and a pass allocates nothing: a CUDA graph can hold
/// it. Sums have a fixed order.
class GpuCubeDual {
 public:
  /// @param like     (problems, nchan, npix, npix), float32 or float64, on a GPU; on the CPU the kernels are emulated, which is
  /// slow
  /// @param weights  without those of bases
  /// @throws ValueError for another dtype, or more pixels or images than kernels count
  GpuCubeDual(const Tensor& like, bool hann, CubeWeights weights, std::optional<CubeDualCut> cut = {},
              EmulatedOrder order = EmulatedOrder::ascending);

  /// Puts all passes into the current stream.
  /// @param q      (problems, nchan, npix, npix), contiguous
  /// @param mask   1 or 0, like q, contiguous; undefined: all may shine
  /// @param steps  s of each image, > 0, (problems, nchan) float64, on the device
  /// @param x      like q, another tensor; overwritten
  void apply(const Tensor& q, const Tensor& mask, const Tensor& steps, const DevicePasses& passes, const Tensor& x);

  /// The dual images of the last call, as CubeProximal::dual(); zeros before the first. What is written there is where the next
  /// call begins.
  const Tensor& dual() const { return dual_; }

 private:
  template <typename T>
  void run(const Tensor& q, const Tensor& mask, const Tensor& steps, const DevicePasses& passes, const Tensor& x);

  CubeDualCut cut_;
  EmulatedOrder order_;
  bool hann_;
  std::int32_t plane_[cube_parts];
  Tensor dual_, other_;          // after even and odd numbers of passes
  Tensor weights_, climbs_;      // (cube_parts, problems) float64
  Tensor magnitudes_;            // (problems) float64; undefined: no pixel is negative
  Tensor slope_, seen_, cuts_;   // slope_ undefined for small images, cuts_ without norms of spectra
  Tensor turns_, t_, momentum_;  // float64
};

}  // namespace mpol::ops
