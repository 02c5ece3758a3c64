#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/proximal/gpu/cube_dual_launch.h>

namespace mpol::ops {

template void launch_on_gpu(CutCubeDualKernel, const CubeDualArrays<float>&, void*);
template void launch_on_gpu(CutCubeDualKernel, const CubeDualArrays<double>&, void*);

}  // namespace mpol::ops
