#include <mpol_cpp/ops/gpu/image_transforms.h>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cufft.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/gpu/gpu_stream.h>

namespace mpol::ops {
namespace {

void check_cufft(cufftResult result, const char* what) {
  if (result != CUFFT_SUCCESS) {
    throw DeviceError(fmt::format("cuFFT cannot {}: error {}; use the eager step", what, static_cast<int>(result)));
  }
}

/// A plan for stacks of images, which any of them may use with a workspace of its own.
class CufftPlan {
 public:
  CufftPlan(cufftType type, std::int64_t images, std::int64_t npix) {
    check_cufft(cufftCreate(&handle_), "make a plan");
    try {
      check_cufft(cufftSetAutoAllocation(handle_, 0), "leave its workspace to others");
      long long extents[] = {npix, npix};
      check_cufft(cufftMakePlanMany64(handle_, 2, extents, nullptr, 1, 0, nullptr, 1, 0, type, images, &workspace_),
                  "plan these transforms");
    } catch (...) {
      cufftDestroy(handle_);
      throw;
    }
  }
  ~CufftPlan() { cufftDestroy(handle_); }
  CufftPlan(const CufftPlan&) = delete;
  CufftPlan& operator=(const CufftPlan&) = delete;

  std::size_t workspace() const { return workspace_; }

  /// Calls run(handle), which puts the transform into the stream.
  template <typename Run>
  void use(const Tensor& workspace, const char* what, const Run& run) const {
    const auto stream = c10::cuda::getCurrentCUDAStream(workspace.device().index()).stream();
    const std::lock_guard lock(mutex_);
    check_cufft(cufftSetWorkArea(handle_, workspace.data_ptr()), "use its workspace");
    check_cufft(cufftSetStream(handle_, stream), "use the stream");
    check_cufft(run(handle_), what);
  }

 private:
  mutable std::mutex mutex_;
  cufftHandle handle_ = 0;
  std::size_t workspace_ = 0;
};

/// The plans used last are kept: to make one takes milliseconds, to destroy one waits for the device, and batches of
/// visibilities have transforms of one size again and again.
std::shared_ptr<const CufftPlan> plan_for(cufftType type, std::int64_t images, std::int64_t npix, torch::Device device) {
  using Key = std::tuple<cufftType, std::int64_t, std::int64_t, int>;
  struct Plans {
    std::mutex mutex;
    std::list<std::pair<Key, std::shared_ptr<const CufftPlan>>> latest_first;
  };
  constexpr std::size_t most = 16;
  static auto& plans = *new Plans;  // never destroyed: at the end of the process cuFFT may be gone before
  const Key key{type, images, npix, device.index()};
  const std::lock_guard lock(plans.mutex);
  auto& list = plans.latest_first;
  const auto known = std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.first == key; });
  if (known != list.end()) {
    list.splice(list.begin(), list, known);
  } else {
    const c10::cuda::CUDAGuard guard(device);  // a plan belongs to the device that is current when it is made
    list.emplace_front(key, std::make_shared<const CufftPlan>(type, images, npix));
    if (list.size() > most) list.pop_back();
  }
  return list.front().second;
}

class CufftImageTransforms : public ImageTransforms {
 public:
  CufftImageTransforms(std::int64_t images, std::int64_t npix, torch::Dtype dtype, torch::Device device)
      : is_double_(dtype == torch::kFloat64),
        forward_(plan_for(is_double_ ? CUFFT_D2Z : CUFFT_R2C, images, npix, device)),
        inverse_(plan_for(is_double_ ? CUFFT_Z2D : CUFFT_C2R, images, npix, device)),
        workspace_(at::empty({static_cast<std::int64_t>(std::max(forward_->workspace(), inverse_->workspace()))},
                             torch::TensorOptions(torch::kUInt8).device(device))) {}

  void forward(const Tensor& images, const Tensor& half_planes) override {
    forward_->use(workspace_, "transform", [&](cufftHandle plan) {
      return is_double_
                 ? cufftExecD2Z(plan, static_cast<double*>(images.data_ptr()),
                                static_cast<cufftDoubleComplex*>(half_planes.data_ptr()))
                 : cufftExecR2C(plan, static_cast<float*>(images.data_ptr()), static_cast<cufftComplex*>(half_planes.data_ptr()));
    });
  }

  void inverse(const Tensor& half_planes, const Tensor& images) override {
    inverse_->use(workspace_, "transform back", [&](cufftHandle plan) {
      return is_double_
                 ? cufftExecZ2D(plan, static_cast<cufftDoubleComplex*>(half_planes.data_ptr()),
                                static_cast<double*>(images.data_ptr()))
                 : cufftExecC2R(plan, static_cast<cufftComplex*>(half_planes.data_ptr()), static_cast<float*>(images.data_ptr()));
    });
  }

  std::int64_t memory_bytes() const override { return static_cast<std::int64_t>(workspace_.nbytes()); }

 private:
  bool is_double_;
  std::shared_ptr<const CufftPlan> forward_, inverse_;
  Tensor workspace_;
};

}  // namespace

std::unique_ptr<ImageTransforms> cufft_image_transforms(std::int64_t images, std::int64_t npix, torch::Dtype dtype,
                                                        torch::Device device) {
  return std::make_unique<CufftImageTransforms>(images, npix, dtype, device);
}

}  // namespace mpol::ops
