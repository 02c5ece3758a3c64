#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// The transforms of a FusedGpuPipeline: of a stack of images at once, without any factor. Both put work into the current
/// stream and allocate nothing.
class ImageTransforms {
 public:
  virtual ~ImageTransforms() = default;
  /// (n, npix, npix) real to (n, npix, npix/2 + 1) complex; the images stay.
  virtual void forward(const Tensor& images, const Tensor& half_planes) = 0;
  /// Back, interior columns counted twice; what was in the half planes is lost.
  virtual void inverse(const Tensor& half_planes, const Tensor& images) = 0;
  /// Bytes of workspace on the device.
  virtual std::int64_t memory_bytes() const { return 0; }
};

/// LibTorch's, for the emulation on the CPU; it overwrites the half planes by NaN, as cuFFT may by anything.
std::unique_ptr<ImageTransforms> aten_image_transforms();

/// cuFFT's on a GPU, with a workspace of LibTorch's allocator. @throws DeviceError when cuFFT refuses, or without CUDA
std::unique_ptr<ImageTransforms> cufft_image_transforms(std::int64_t images, std::int64_t npix, torch::Dtype dtype,
                                                        torch::Device device);

}  // namespace mpol::ops
