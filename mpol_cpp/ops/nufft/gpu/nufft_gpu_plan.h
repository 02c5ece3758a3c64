#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <c10/core/Stream.h>
#include <torch/types.h>

#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/gpu/image_transforms.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_arrays.h>
#include <mpol_cpp/ops/nufft/nufft_plan.h>
#include <mpol_cpp/ops/nufft/nufft_points.h>

namespace mpol::ops {

struct NufftGpuSettings {
  NufftSettings transform;
  torch::Device device = torch::kCPU;  // a GPU; on the CPU the kernels are emulated, which is slow
  std::int64_t task_points = 0;        // most points of a block; chosen by their number unless given
  std::int64_t images_at_once = 0;     // chosen by the memory they take unless given
  EmulatedOrder order = EmulatedOrder::ascending;
};

/// Data for NufftGpuPlan::fused, (channels, points) real on its device, in its own order.
struct NufftGpuData {
  Tensor real, imag, weight;
};

/// The transforms of NufftPlan on a GPU, of stacks of images at once:
///   type 2  pad the image, transform it, interpolate at the points of each tile, loaded into shared memory
///   type 1  grid each tile's points in shared memory, gather what overlaps, transform back, crop
///   fused   both in one visit of the points
/// Points are sorted on the CPU once. Sums have a fixed order, also of tiles that overlap: results repeat bit for bit. All
/// work goes to the current stream, nothing waits for it; once a number of images was transformed, the next time can be
/// recorded as a CUDA graph. One stream at a time.
template <typename T>
class NufftGpuPlan {
 public:
  /// @param u, v        (count) wavelengths, finite, on the CPU
  /// @param max_abs_u   their largest magnitudes, <= 1/(2 pixel)
  NufftGpuPlan(const NufftGpuSettings& settings, const double* u, const double* v, std::int64_t count, double max_abs_u,
               double max_abs_v);

  std::int64_t points() const { return shape_.points; }

  /// @param images        (n, npix, npix) real, contiguous, on the device
  /// @param visibilities  (n, points) complex, contiguous, on the device, in the order of u and v; overwritten
  void type2(const Tensor& images, double scale, const Tensor& visibilities);
  /// The adjoint; `images` are overwritten.
  void type1(const Tensor& visibilities, double scale, const Tensor& images);

  /// @param visibilities  (channels, points) complex
  /// @param weights       (channels, points) real
  NufftGpuData sorted(const Tensor& visibilities, const Tensor& weights) const;

  /// sum w |V(x) - d|^2 of each image into values (n) float64, and its gradient; image i sees channel i % channels. Both are
  /// overwritten; each visibility is read once.
  void fused(const Tensor& images, double scale, const NufftGpuData& data, const Tensor& gradient, const Tensor& values);

  /// Where it was made in another stream: keeps what it holds until this one has used it too.
  void keep_for(c10::Stream stream) const;

  /// What it holds; evaluations take more for a while: see workspace_bytes().
  std::int64_t memory_bytes() const;
  /// Bytes that one image takes while it is transformed.
  std::int64_t workspace_bytes() const;

 private:
  struct Workspace;

  void upload(const NufftPoints<T>& points);
  std::vector<NufftGpuTask> tasks_of(const NufftPoints<T>& points, std::vector<std::int64_t>& tile_begin);
  void check(const Tensor& tensor, torch::Dtype dtype, at::IntArrayRef shape, const char* what) const;
  ImageTransforms& transforms(std::int64_t images);
  NufftGpuArrays<T> arrays(std::int64_t images) const;
  void launch(NufftGpuKernel kernel, const NufftGpuArrays<T>& arrays) const;
  /// Calls body(first image, workspace for the next ones) until all are done.
  template <typename Body>
  void each_stack(std::int64_t images, const Body& body);
  template <typename Body>
  void each_stack_of(const Tensor& images, double scale, const Tensor& visibilities, const Body& body);

  NufftGpuSettings settings_;
  NufftGpuShape shape_{};
  std::vector<T> power_;  // of the window, as in NufftGpuArrays
  Tensor x_, y_, cell_, order_, task_, tile_begin_, correction_;
  mutable std::mutex mutex_;  // for the transforms
  std::map<std::int64_t, std::unique_ptr<ImageTransforms>> transforms_;
};

}  // namespace mpol::ops
