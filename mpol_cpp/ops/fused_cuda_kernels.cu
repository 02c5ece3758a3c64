#include <string>

#include <cuda_runtime.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/fused_cuda_launch.h>

namespace mpol::ops {
namespace {

template <int phase, typename Body>
__device__ __forceinline__ void run_phases(const Body& body, Place place, typename Body::Shared& shared,
                                           typename Body::Local& local) {
  body.template run<phase>(place, shared, local);
  if constexpr (phase + 1 < Body::phases) {
    __syncthreads();
    run_phases<phase + 1>(body, place, shared, local);
  }
}

template <typename Body>
__global__ void __launch_bounds__(Body::threads) run_body(const __grid_constant__ Body body) {
  __shared__ typename Body::Shared shared;
  typename Body::Local local;
  run_phases<0>(body, {static_cast<std::int64_t>(blockIdx.x), static_cast<int>(threadIdx.x)}, shared, local);
}

void check(cudaError_t status) {
  if (status != cudaSuccess) {
    throw DeviceError(std::string("CUDA refuses a kernel of the fused step: ") + cudaGetErrorString(status) +
                      "; use the eager step");
  }
}

}  // namespace

template <typename T>
void launch_on_gpu(DeviceKernel kernel, TileKind tile, const DeviceArrays<T>& arrays, void* stream) {
  const auto run = [stream](const auto& body) {
    using Body = std::decay_t<decltype(body)>;
    run_body<Body><<<static_cast<unsigned>(body.blocks()), Body::threads, 0, static_cast<cudaStream_t>(stream)>>>(body);
    check(cudaGetLastError());
  };
  if (tile == TileKind::high) with_body<HighTile>(kernel, arrays, run);
  else with_body<LowTile>(kernel, arrays, run);
}

template void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<float>&, void*);
template void launch_on_gpu(DeviceKernel, TileKind, const DeviceArrays<double>&, void*);

}  // namespace mpol::ops
