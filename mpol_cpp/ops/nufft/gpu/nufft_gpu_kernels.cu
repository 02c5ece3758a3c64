#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_launch.h>

namespace mpol::ops {

template void launch_on_gpu(NufftGpuKernel, const NufftGpuArrays<float>&, void*);
template void launch_on_gpu(NufftGpuKernel, const NufftGpuArrays<double>&, void*);

}  // namespace mpol::ops
