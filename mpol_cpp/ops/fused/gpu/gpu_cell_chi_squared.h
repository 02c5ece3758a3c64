#pragma once

#include <cstdint>

#include <mpol_cpp/ops/fused/gpu/fused_gpu_cut.h>
#include <mpol_cpp/ops/gpu/emulated_block.h>

namespace mpol::ops {

/// chi^2 at cells and its gradient by the image, on a GPU in three kernels, or in their emulation: what CellChiSquared is on the
/// CPU.
class GpuCellChiSquared {
 public:
  /// Whether a device has kernels for images of this size, and a GPU's agree with LibTorch's operations, which is asked at the
  /// first use on each.
  static bool has(std::int64_t npix, torch::Dtype dtype, torch::Device device);
  /// Whether they give on a device what LibTorch's operations give there, of small images; on the CPU they are emulated.
  static bool agrees(torch::Dtype dtype, torch::Device device);

  /// @param cells, data, weights  as in gpu_cells
  /// @param dtype                 float32 or float64, of the images, the gradient and the arithmetic
  /// @throws ValueError as gpu_cells does
  GpuCellChiSquared(const Tensor& cells, const Tensor& data, const Tensor& weights, std::int64_t nchan, std::int64_t npix,
                    double cell_area, torch::Dtype dtype, torch::Device device, EmulatedOrder order = EmulatedOrder::ascending);

  /// Puts its work into the current stream and waits for nothing.
  /// @param images    (problems, nchan, npix, npix), contiguous
  /// @param gradient  the same, overwritten
  /// @return          (problems, nchan) float64
  Tensor run(const Tensor& images, const Tensor& gradient) const;

 private:
  template <typename T>
  void launch(const Tensor& images, const Tensor& gradient, const GpuShape& shape, const GpuRowCut& cut,
              const Tensor& sums) const;

  EmulatedOrder order_;
  double cell_area_;
  GpuRowCut cut_;          // of one problem
  Tensor scale_, lambda_;  // what its kernels ask for besides: (1) 1, and no regularizer
};

}  // namespace mpol::ops
