#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Stream.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/fourier/nufft_options.h>
#include <mpol_cpp/ops/nufft/nufft_plan.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol {

class NufftImpl;

namespace ops {
template <typename T>
class NufftGpuPlan;
}  // namespace ops

using torch::Tensor;

/// The kernels that transform tensors on the CPU.
enum class NufftKernelsOf {
  device,        ///< the CPU's
  emulated_gpu,  ///< those of a GPU, by loops: slow, for tests
};
/// What plans that are made in its scope take, on this thread: for tests.
class ScopedNufftKernels {
 public:
  explicit ScopedNufftKernels(NufftKernelsOf kernels);
  ~ScopedNufftKernels();
  ScopedNufftKernels(const ScopedNufftKernels&) = delete;
  ScopedNufftKernels& operator=(const ScopedNufftKernels&) = delete;

 private:
  NufftKernelsOf before_;
};

/// The plans of a Nufft: one for each device and dtype that was used and each distinct set of baselines.
class NufftPlans {
 public:
  /// Takes what NufftImpl takes; the plans themselves are made when they are first used.
  NufftPlans(const GridCoords& coords, Baselines baselines, std::int64_t nchan, NufftOptions options);
  ~NufftPlans();
  NufftPlans(const NufftPlans&) = delete;
  NufftPlans& operator=(const NufftPlans&) = delete;

  /// Nufft's forward without its checks.
  Tensor type2(const Tensor& sky);
  Tensor type1(const Tensor& visibilities);  ///< the adjoint, of (…, nchan, nvis) complex

  /// The CPU's plan of a channel, in the dtype T.
  template <typename T>
  const ops::NufftPlan<T>& plan(std::int64_t channel);

  /// True where tensors of a device are transformed by the kernels of a GPU.
  bool uses_gpu_kernels(torch::Device device) const;
  /// For those: the plan of a channel, or of all where they share their baselines.
  template <typename T>
  std::shared_ptr<ops::NufftGpuPlan<T>> device_plan(torch::Device device, std::int64_t channel);
  /// Makes the plans for tensors of a device and a real dtype; else the first transform does.
  void prepare(torch::Device device, torch::Dtype dtype);
  /// Where those of a device were made in another stream: keeps what they hold until this one has used it too.
  void keep_for(c10::Stream stream) const;
  /// Gives back those of other devices, and with the CPU all.
  void keep_device_plans(torch::Device device);

  const GridCoords& coords() const { return coords_; }       ///< the grid of the images
  const Baselines& baselines() const { return baselines_; }  ///< where the visibilities are
  std::int64_t nchan() const { return nchan_; }              ///< of image and visibilities
  const NufftOptions& options() const { return options_; }   ///< as they were given
  /// Bytes of all plans made so far, on every device.
  std::int64_t memory_bytes() const;

 private:
  template <typename T>
  struct Plans {
    std::vector<std::unique_ptr<ops::NufftPlan<T>>> cpu_plans;                                        // by set of baselines
    std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<ops::NufftGpuPlan<T>>> gpu_plans;  // and device

    std::int64_t memory_bytes() const;
  };
  template <typename T>
  Plans<T>& plans();
  /// Calls `use` for each set of baselines with the images that it is for, which are transformed together.
  void for_each_set(std::int64_t images,
                    const std::function<void(std::int64_t channel, const std::vector<std::int64_t>& images)>& use) const;
  template <typename T>
  Tensor type2_on_gpu(const Tensor& sky);
  template <typename T>
  Tensor type1_on_gpu(const Tensor& visibilities);
  ops::NufftSettings settings() const;

  GridCoords coords_;
  Baselines baselines_;
  std::int64_t nchan_;
  NufftOptions options_;
  NufftKernelsOf kernels_;
  mutable std::mutex mutex_;
  std::unique_ptr<Plans<float>> single_;
  std::unique_ptr<Plans<double>> double_;
};

/// @throws DataError unless max_abs_u, max_abs_v (wavelengths) <= 1/(2 dl), the largest that the image represents
void check_nufft_fit(const GridCoords& coords, double max_abs_u, double max_abs_v);

/// Those of a Nufft, for steps that transform without its checks and autograd.
NufftPlans& nufft_plans(const NufftImpl& nufft);

}  // namespace mpol
