#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_gpu_bodies.h>

namespace mpol::ops {

template void launch_on_gpu(ToeplitzKernel, const ToeplitzArrays<float>&, void*);
template void launch_on_gpu(ToeplitzKernel, const ToeplitzArrays<double>&, void*);

}  // namespace mpol::ops
