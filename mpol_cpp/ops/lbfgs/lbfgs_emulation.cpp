#include <mpol_cpp/ops/lbfgs/lbfgs_launch.h>

namespace mpol::ops {

template <typename T>
void emulate_lbfgs(LbfgsKernel kernel, const LbfgsArrays<T>& arrays, EmulatedOrder order) {
  with_lbfgs_body(kernel, arrays, [order](const auto& body) { emulate_body(body, order); });
}

template void emulate_lbfgs(LbfgsKernel, const LbfgsArrays<float>&, EmulatedOrder);
template void emulate_lbfgs(LbfgsKernel, const LbfgsArrays<double>&, EmulatedOrder);

}  // namespace mpol::ops
