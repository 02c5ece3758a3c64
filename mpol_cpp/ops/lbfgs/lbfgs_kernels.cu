#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_launch.h>

namespace mpol::ops {

template void launch_on_gpu(LbfgsKernel, const LbfgsArrays<float>&, void*);
template void launch_on_gpu(LbfgsKernel, const LbfgsArrays<double>&, void*);

}  // namespace mpol::ops
