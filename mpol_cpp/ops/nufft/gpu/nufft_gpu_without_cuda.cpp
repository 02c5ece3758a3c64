#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/gpu/gpu_stream.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_launch.h>

namespace mpol::ops {

template <typename T>
void launch_nufft_on_gpu(NufftDeviceKernel, const NufftDeviceArrays<T>&, void*) {
  throw DeviceError(no_cuda);
}
template void launch_nufft_on_gpu(NufftDeviceKernel, const NufftDeviceArrays<float>&, void*);
template void launch_nufft_on_gpu(NufftDeviceKernel, const NufftDeviceArrays<double>&, void*);

}  // namespace mpol::ops
