// In builds without CUDA: what needs it says so.
#ifndef MPOL_WITH_CUDA
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused_cuda_fft.h>
#include <mpol_cpp/ops/fused_cuda_launch.h>
#include <mpol_cpp/ops/fused_cuda_pipeline.h>
#include <mpol_cpp/ops/lbfgs_launch.h>
#include <mpol_cpp/ops/nufft_cuda_launch.h>

namespace mpol::ops {
namespace {

constexpr const char* no_cuda = "this build of mpol_cpp has no CUDA: configure one with -DMPOL_CUDA=ON";

}  // namespace

template <typename T>
void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<T>&, void*) {
  throw DeviceError(no_cuda);
}
template void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<float>&, void*);
template void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<double>&, void*);

template <typename T>
void launch_lbfgs_on_gpu(LbfgsKernel, const LbfgsArrays<T>&, void*) {
  throw DeviceError(no_cuda);
}
template void launch_lbfgs_on_gpu(LbfgsKernel, const LbfgsArrays<float>&, void*);
template void launch_lbfgs_on_gpu(LbfgsKernel, const LbfgsArrays<double>&, void*);

template <typename T>
void launch_nufft_on_gpu(NufftDeviceKernel, const NufftDeviceArrays<T>&, void*) {
  throw DeviceError(no_cuda);
}
template void launch_nufft_on_gpu(NufftDeviceKernel, const NufftDeviceArrays<float>&, void*);
template void launch_nufft_on_gpu(NufftDeviceKernel, const NufftDeviceArrays<double>&, void*);

std::unique_ptr<ImageTransforms> cufft_image_transforms(std::int64_t, std::int64_t, torch::Dtype, torch::Device) {
  throw DeviceError(no_cuda);
}

namespace detail {
void* current_gpu_stream(torch::Device) { throw DeviceError(no_cuda); }
}  // namespace detail

}  // namespace mpol::ops
#endif
