#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_launch.h>

namespace mpol::ops {

template void launch_on_gpu(TiledKernel, const GpuArrays<float>&, void*);
template void launch_on_gpu(TiledKernel, const GpuArrays<double>&, void*);

}  // namespace mpol::ops
