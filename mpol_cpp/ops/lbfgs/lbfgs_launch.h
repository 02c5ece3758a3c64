#pragma once

// The kernels of L-BFGS, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/lbfgs/lbfgs_scalars.h>

namespace mpol::ops {

/// Calls run(body) with the body of a kernel.
template <typename T, typename Run>
void with_body(LbfgsKernel kernel, const LbfgsArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case LbfgsKernel::move:
      return run(LbfgsMoveBody<T>{arrays});
    case LbfgsKernel::measure:
      return run(LbfgsMeasureBody<T>{arrays});
    case LbfgsKernel::judge:
      return run(LbfgsJudgeBody<T>{arrays});
    case LbfgsKernel::take:
      return run(LbfgsTakeBody<T>{arrays});
    case LbfgsKernel::correlate:
      return run(LbfgsCorrelateBody<T>{arrays});
    case LbfgsKernel::sum_up:
      return run(LbfgsSumUpBody<T>{arrays});
    case LbfgsKernel::direct:
      return run(LbfgsDirectBody<T>{arrays});
    case LbfgsKernel::steer:
      return run(LbfgsSteerBody<T>{arrays});
    case LbfgsKernel::aim:
      return run(LbfgsAimBody<T>{arrays});
  }
}

}  // namespace mpol::ops
