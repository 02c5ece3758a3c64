#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_launch.h>

namespace mpol::ops {

template <typename T>
void emulate_nufft(NufftDeviceKernel kernel, const NufftDeviceArrays<T>& arrays, EmulatedOrder order) {
  with_nufft_body(kernel, arrays, [order](const auto& body) { emulate_body(body, order); });
}

template void emulate_nufft(NufftDeviceKernel, const NufftDeviceArrays<float>&, EmulatedOrder);
template void emulate_nufft(NufftDeviceKernel, const NufftDeviceArrays<double>&, EmulatedOrder);

}  // namespace mpol::ops
