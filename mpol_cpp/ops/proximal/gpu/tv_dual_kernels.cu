#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/proximal/gpu/tv_dual_launch.h>

namespace mpol::ops {

template void launch_on_gpu(CutTvDualKernel, const TvDualArrays<float>&, void*);
template void launch_on_gpu(CutTvDualKernel, const TvDualArrays<double>&, void*);

}  // namespace mpol::ops
