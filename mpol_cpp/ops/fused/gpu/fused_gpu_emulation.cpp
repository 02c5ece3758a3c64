#include <mpol_cpp/ops/fused/gpu/fused_gpu_launch.h>

namespace mpol::ops {

template <typename T>
void emulate(DeviceKernel kernel, TileKind tile, const DeviceArrays<T>& arrays, EmulatedOrder order) {
  const auto run = [order](const auto& body) { emulate_body(body, order); };
  switch (tile) {
    case TileKind::low:
      return with_body<LowTile>(kernel, arrays, run);
    case TileKind::high:
      return with_body<HighTile>(kernel, arrays, run);
    case TileKind::odd:
      return with_body<OddTile>(kernel, arrays, run);
  }
}

template void emulate(DeviceKernel, TileKind, const DeviceArrays<float>&, EmulatedOrder);
template void emulate(DeviceKernel, TileKind, const DeviceArrays<double>&, EmulatedOrder);

}  // namespace mpol::ops
