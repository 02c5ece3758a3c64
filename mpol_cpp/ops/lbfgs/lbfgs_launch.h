#pragma once

// The kernels of L-BFGS, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_scalars.h>

namespace mpol::ops {

/// Calls run(body) with the body of a kernel.
template <typename T, typename Run>
void with_lbfgs_body(LbfgsKernel kernel, const LbfgsArrays<T>& arrays, const Run& run) {
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

/// Puts a kernel into a stream, a cudaStream_t of the present device.
/// @throws DeviceError when CUDA refuses it, or when this build has no CUDA
template <typename T>
void launch_lbfgs_on_gpu(LbfgsKernel kernel, const LbfgsArrays<T>& arrays, void* stream);

/// Runs a kernel at once, on the CPU. @throws std::out_of_range for an element outside an array
template <typename T>
void emulate_lbfgs(LbfgsKernel kernel, const LbfgsArrays<T>& arrays, EmulatedOrder order);

}  // namespace mpol::ops
