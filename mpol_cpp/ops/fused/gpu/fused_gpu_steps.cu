#include <mpol_cpp/ops/gpu/launch_stages.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_steps.h>

namespace mpol::ops {

template void launch_stages_on_gpu(StepsKernel, const GpuArrays<float>&, void*);
template void launch_stages_on_gpu(StepsKernel, const GpuArrays<double>&, void*);

}  // namespace mpol::ops
