#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_launch.h>

namespace mpol::ops {

template <typename T>
void launch_nufft_on_gpu(NufftDeviceKernel kernel, const NufftDeviceArrays<T>& arrays, void* stream) {
  with_nufft_body(kernel, arrays, [stream](const auto& body) { launch_body(body, stream); });
}

template void launch_nufft_on_gpu(NufftDeviceKernel, const NufftDeviceArrays<float>&, void*);
template void launch_nufft_on_gpu(NufftDeviceKernel, const NufftDeviceArrays<double>&, void*);

}  // namespace mpol::ops
