#include <mpol_cpp/ops/fused/gpu/fused_gpu_launch.h>
#include <mpol_cpp/ops/gpu/launch_body.h>

namespace mpol::ops {

template <typename T>
void launch_on_gpu(DeviceKernel kernel, TileKind tile, const DeviceArrays<T>& arrays, void* stream) {
  const auto run = [stream](const auto& body) { launch_body(body, stream); };
  if (tile == TileKind::high) with_body<HighTile>(kernel, arrays, run);
  else with_body<LowTile>(kernel, arrays, run);
}

template void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<float>&, void*);
template void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<double>&, void*);

}  // namespace mpol::ops
