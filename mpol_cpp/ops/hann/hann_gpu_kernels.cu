#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/hann/hann_gpu_body.h>

namespace mpol::ops {

template void launch_on_gpu(HannKernel, const HannArrays<float>&, void*);
template void launch_on_gpu(HannKernel, const HannArrays<double>&, void*);

}  // namespace mpol::ops
