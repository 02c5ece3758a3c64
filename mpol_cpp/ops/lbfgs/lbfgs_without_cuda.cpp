#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/gpu/gpu_stream.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_launch.h>

namespace mpol::ops {

template <typename T>
void launch_lbfgs_on_gpu(LbfgsKernel, const LbfgsArrays<T>&, void*) {
  throw DeviceError(no_cuda);
}
template void launch_lbfgs_on_gpu(LbfgsKernel, const LbfgsArrays<float>&, void*);
template void launch_lbfgs_on_gpu(LbfgsKernel, const LbfgsArrays<double>&, void*);

}  // namespace mpol::ops
