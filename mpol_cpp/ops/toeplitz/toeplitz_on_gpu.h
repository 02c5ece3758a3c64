#pragma once

#include <torch/types.h>

#include <mpol_cpp/core/accumulate.h>
#include <mpol_cpp/ops/gpu/emulated_block.h>

namespace mpol::ops {

using torch::Tensor;

/// Products of real images with symmetric Toeplitz matrices on a GPU by kernels of our own, or in their emulation on the CPU: as
/// toeplitz_product and toeplitz_quadratic, in float64 whatever the images are. They take 16 bytes a pixel for a while, of as
/// many images as 512 MiB hold. Nothing waits for the device, but the first call for a size, which copies a table there and is
/// not to be recorded; without autograd.
struct ToeplitzOnGpu {
  /// Whether a device has kernels for this size: npix is even, 2 npix has no prime factor but 2, 3 and 5, and a line of so many
  /// points fits into a block.
  static bool has(std::int64_t npix, torch::Device device);
  /// The same for a GPU whose blocks may have so much shared memory.
  static bool fits(std::int64_t npix, std::int64_t shared_memory);

  /// @param images  (…, nchan, npix, npix) float32 or float64
  /// @param kernel  (nchan, npix + 1, 2 npix) float64
  static Tensor product(const Tensor& images, const Tensor& kernel, EmulatedOrder order = EmulatedOrder::ascending);

  /// @param linear    (nchan, npix, npix) float64
  /// @param constant  (nchan) float64
  /// @param gradient  like the images, contiguous
  /// @return          one value per channel, (…, nchan), float64
  static Tensor quadratic(const Tensor& images, const Tensor& kernel, const Tensor& linear, const Tensor& constant,
                          Tensor& gradient, Accumulate accumulate, EmulatedOrder order = EmulatedOrder::ascending);
};

}  // namespace mpol::ops
