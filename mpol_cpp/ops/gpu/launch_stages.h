#pragma once

// How the CUDA compiler makes one kernel of stages; for .cu files alone.
#include <algorithm>
#include <cstddef>
#include <string>

#include <cooperative_groups.h>

#include <mpol_cpp/ops/gpu/launch_body.h>

namespace mpol::ops {

/// Runs the blocks of a body that are this block's: each of as many as were started takes one, then the one as many further on.
/// A body has its shared memory where others have their scratch memory.
/// @tparam threads  of a block
template <int threads>
struct RunOwnBlocks {
  unsigned char* memory;

  template <typename Body>
  __device__ __forceinline__ void operator()(const Body& body) const {
    static_assert(!BodyScratch<Body>::has || std::is_empty_v<typename Body::Shared>, "shared and scratch memory are one");
    auto& shared = *reinterpret_cast<typename Body::Shared*>(memory);
    const std::int64_t blocks = body.blocks();
    for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
      __syncthreads();  // the memory is done with by whoever had it before
      typename Body::Local local;
      run_all_phases<threads>(body, Place{block, static_cast<int>(threadIdx.x), 0, memory}, shared, local);
    }
  }
};

template <typename Stages>
__global__ void __launch_bounds__(Stages::threads, Stages::least_blocks) run_all_stages(const __grid_constant__ Stages stages) {
  extern __shared__ __align__(16) unsigned char scratch[];
  const auto grid = cooperative_groups::this_grid();
  const int count = stages.stages();
  for (int stage = 0; stage < count; ++stage) {
    if (stage > 0) grid.sync();
    stages.with_bodies(stage, RunOwnBlocks<Stages::threads>{scratch});
  }
}

/// Puts stages into a stream, a cudaStream_t of the present device, as one kernel of as many blocks as the device holds at once;
/// nothing for no blocks. @throws DeviceError when CUDA refuses it
template <typename Stages>
void launch_stages(const Stages& stages, void* stream) {
  std::int64_t blocks = 0;
  std::size_t bytes = 0;
  for (int stage = 0; stage < stages.stages(); ++stage) {
    stages.with_bodies(stage, [&](const auto& body) {
      using Body = std::decay_t<decltype(body)>;
      blocks = std::max(blocks, body.blocks());
      bytes = std::max({bytes, static_cast<std::size_t>(BodyScratch<Body>::bytes(body)), sizeof(typename Body::Shared)});
    });
  }
  if (blocks == 0) return;
  const auto check = [](cudaError_t status) {
    if (status == cudaSuccess) return;
    throw DeviceError(std::string("CUDA refuses a kernel whose blocks wait for each other: ") + cudaGetErrorString(status) +
                      "; use the eager step, or the CPU");
  };
  static_cast<void>(cudaGetLastError());  // what another call left is not of this kernel
  allow_scratch(run_all_stages<Stages>);
  int device = 0, processors = 0, of_processor = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_processor, run_all_stages<Stages>, Stages::threads, bytes));
  const auto started = static_cast<unsigned>(std::min(blocks, std::int64_t{processors} * of_processor));
  void* arguments[] = {const_cast<Stages*>(&stages)};
  check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(run_all_stages<Stages>), started, Stages::threads, arguments,
                                    bytes, static_cast<cudaStream_t>(stream)));
}

/// Stages of a family (ops/gpu/run_kernel.h), likewise; a .cu file of the family instantiates it.
template <typename Kernel, typename Arrays>
void launch_stages_on_gpu(Kernel kernel, const Arrays& arrays, void* stream) {
  with_stages(kernel, arrays, [stream](const auto& stages) { launch_stages(stages, stream); });
}

}  // namespace mpol::ops
