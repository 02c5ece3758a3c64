#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_launch.h>
#include <mpol_cpp/ops/gpu/gpu_stream.h>

namespace mpol::ops {

template <typename T>
void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<T>&, void*) {
  throw DeviceError(no_cuda);
}
template void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<float>&, void*);
template void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<double>&, void*);

}  // namespace mpol::ops
