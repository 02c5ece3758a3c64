#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_launch.h>

namespace mpol::ops {

template <typename T>
void launch_lbfgs_on_gpu(LbfgsKernel kernel, const LbfgsArrays<T>& arrays, void* stream) {
  with_lbfgs_body(kernel, arrays, [stream](const auto& body) { launch_body(body, stream); });
}

template void launch_lbfgs_on_gpu(LbfgsKernel, const LbfgsArrays<float>&, void*);
template void launch_lbfgs_on_gpu(LbfgsKernel, const LbfgsArrays<double>&, void*);

}  // namespace mpol::ops
