#pragma once

// How the CUDA compiler makes kernels of bodies; for .cu files alone.
#include <cstddef>
#include <string>
#include <type_traits>

#include <cuda_runtime.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

/// @tparam threads  of the block, of which those that the body does not have wait beside its own
template <int phase, int end, int threads, typename Body>
__device__ __forceinline__ void run_phases(const Body& body, Place place, typename Body::Shared& shared,
                                           typename Body::Local& local) {
  if constexpr (phase < end) {
    if constexpr (threads == Body::threads) body.template run<phase>(place, shared, local);
    else if (place.thread < Body::threads) body.template run<phase>(place, shared, local);
    if constexpr (phase + 1 < Body::phases) __syncthreads();
    run_phases<phase + 1, end, threads>(body, place, shared, local);
  }
}

/// All phases of one block, likewise.
template <int threads, typename Body>
__device__ __forceinline__ void run_all_phases(const Body& body, Place place, typename Body::Shared& shared,
                                               typename Body::Local& local) {
  using Rounds = BodyRounds<Body>;
  run_phases<0, Rounds::begin, threads>(body, place, shared, local);
  if constexpr (Rounds::begin < Rounds::end) {
    const std::int64_t rounds = Rounds::count(body, place.block);
    for (std::int64_t round = 0; round < rounds; ++round) {
      place.round = round;
      run_phases<Rounds::begin, Rounds::end, threads>(body, place, shared, local);
    }
    place.round = 0;
    run_phases<Rounds::end, Body::phases, threads>(body, place, shared, local);
  }
}

/// How many blocks of a body a processor must be able to hold; 0: the compiler decides, and may put values into memory for more.
template <typename Body, typename = void>
struct BodyBlocks {
  static constexpr int least = 0;
};
template <typename Body>
struct BodyBlocks<Body, std::void_t<decltype(Body::least_blocks)>> {
  static constexpr int least = Body::least_blocks;
};

template <typename Body>
__global__ void __launch_bounds__(Body::threads, BodyBlocks<Body>::least) run_body(const __grid_constant__ Body body) {
  __shared__ typename Body::Shared shared;
  typename Body::Local local;
  Place place{static_cast<std::int64_t>(blockIdx.x), static_cast<int>(threadIdx.x), 0};
  if constexpr (BodyScratch<Body>::has) {
    extern __shared__ __align__(16) unsigned char scratch[];
    place.memory = scratch;
  }
  run_all_phases<Body::threads>(body, place, shared, local);
}

/// Lets a kernel have all the scratch memory that the present device gives: never less again, since recordings may hold launches
/// that asked for more. A refusal shows in the launch.
template <typename Kernel>
void allow_scratch(Kernel kernel) {
  int device = 0, most = 0;
  cudaFuncAttributes own{};
  if (cudaGetDevice(&device) != cudaSuccess) return;
  if (cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess) return;
  if (cudaFuncGetAttributes(&own, kernel) != cudaSuccess) return;
  static_cast<void>(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - static_cast<int>(own.sharedSizeBytes)));
}

/// Puts a kernel into a stream, a cudaStream_t of the present device; nothing for no blocks.
/// @throws DeviceError when CUDA refuses it
template <typename Body>
void launch_body(const Body& body, void* stream) {
  const std::int64_t blocks = body.blocks();
  if (blocks == 0) return;
  constexpr std::int64_t most = 0x7fffffff;
  if (blocks > most) throw DeviceError("a kernel of " + std::to_string(blocks) + " blocks is more than CUDA takes: use the CPU");
  static_cast<void>(cudaGetLastError());  // what another call left is not of this kernel
  const auto scratch = static_cast<std::size_t>(BodyScratch<Body>::bytes(body));
  if constexpr (BodyScratch<Body>::has) allow_scratch(run_body<Body>);
  run_body<Body><<<static_cast<unsigned>(blocks), Body::threads, scratch, static_cast<cudaStream_t>(stream)>>>(body);
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    throw DeviceError(std::string("CUDA refuses a kernel: ") + cudaGetErrorString(status) + "; use the eager step, or the CPU");
  }
}

/// A kernel of a family (ops/gpu/run_kernel.h), likewise; a family's .cu file instantiates it.
template <typename Kernel, typename Arrays>
void launch_on_gpu(Kernel kernel, const Arrays& arrays, void* stream) {
  with_body(kernel, arrays, [stream](const auto& body) { launch_body(body, stream); });
}

}  // namespace mpol::ops
