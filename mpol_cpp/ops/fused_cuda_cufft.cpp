// Compiled in builds with CUDA only.
#include <mpol_cpp/ops/fused_cuda_fft.h>

#include <algorithm>

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cufft.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused_cuda_pipeline.h>

namespace mpol::ops {
namespace {

void check_cufft(cufftResult result, const char* what) {
  if (result != CUFFT_SUCCESS) {
    throw DeviceError(fmt::format("cuFFT cannot {}: error {}; use the eager step", what, static_cast<int>(result)));
  }
}

/// A plan for all images, and the bytes of workspace that it wants.
class CufftPlan {
 public:
  CufftPlan(cufftType type, std::int64_t images, std::int64_t npix) {
    check_cufft(cufftCreate(&handle_), "make a plan");
    check_cufft(cufftSetAutoAllocation(handle_, 0), "leave its workspace to others");
    long long extents[] = {npix, npix};
    check_cufft(cufftMakePlanMany64(handle_, 2, extents, nullptr, 1, 0, nullptr, 1, 0, type, images, &workspace_),
                "plan these transforms");
  }
  ~CufftPlan() { cufftDestroy(handle_); }
  CufftPlan(const CufftPlan&) = delete;
  CufftPlan& operator=(const CufftPlan&) = delete;

  std::size_t workspace() const { return workspace_; }
  cufftHandle in(const Tensor& workspace, cudaStream_t stream) const {
    check_cufft(cufftSetWorkArea(handle_, workspace.data_ptr()), "use its workspace");
    check_cufft(cufftSetStream(handle_, stream), "use the stream");
    return handle_;
  }

 private:
  cufftHandle handle_ = 0;
  std::size_t workspace_ = 0;
};

class CufftImageTransforms : public ImageTransforms {
 public:
  CufftImageTransforms(std::int64_t images, std::int64_t npix, torch::Dtype dtype, torch::Device device)
      : is_double_(dtype == torch::kFloat64),
        forward_(is_double_ ? CUFFT_D2Z : CUFFT_R2C, images, npix),
        inverse_(is_double_ ? CUFFT_Z2D : CUFFT_C2R, images, npix),
        workspace_(at::empty({static_cast<std::int64_t>(std::max(forward_.workspace(), inverse_.workspace()))},
                             torch::TensorOptions(torch::kUInt8).device(device))) {}

  void forward(const Tensor& images, const Tensor& half_planes) override {
    const auto plan = forward_.in(workspace_, stream());
    check_cufft(is_double_ ? cufftExecD2Z(plan, static_cast<double*>(images.data_ptr()),
                                          static_cast<cufftDoubleComplex*>(half_planes.data_ptr()))
                           : cufftExecR2C(plan, static_cast<float*>(images.data_ptr()),
                                          static_cast<cufftComplex*>(half_planes.data_ptr())),
                "transform");
  }

  void inverse(const Tensor& half_planes, const Tensor& images) override {
    const auto plan = inverse_.in(workspace_, stream());
    check_cufft(is_double_ ? cufftExecZ2D(plan, static_cast<cufftDoubleComplex*>(half_planes.data_ptr()),
                                          static_cast<double*>(images.data_ptr()))
                           : cufftExecC2R(plan, static_cast<cufftComplex*>(half_planes.data_ptr()),
                                          static_cast<float*>(images.data_ptr())),
                "transform back");
  }

 private:
  cudaStream_t stream() const { return c10::cuda::getCurrentCUDAStream(workspace_.device().index()).stream(); }

  bool is_double_;
  CufftPlan forward_, inverse_;
  Tensor workspace_;
};

}  // namespace

std::unique_ptr<ImageTransforms> cufft_image_transforms(std::int64_t images, std::int64_t npix, torch::Dtype dtype,
                                                        torch::Device device) {
  const c10::cuda::CUDAGuard guard(device);  // a plan belongs to the device that is current when it is made
  return std::make_unique<CufftImageTransforms>(images, npix, dtype, device);
}

namespace detail {
void* current_gpu_stream(torch::Device device) { return c10::cuda::getCurrentCUDAStream(device.index()).stream(); }
}  // namespace detail

}  // namespace mpol::ops
