#include <mpol_cpp/device/cuda_memory.h>

#ifdef MPOL_WITH_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#endif

namespace mpol::detail {

#ifdef MPOL_WITH_CUDA
std::int64_t cuda_free_bytes(int index) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(index));
  std::size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(free);
}
#else
std::int64_t cuda_free_bytes(int) { return 0; }
#endif

}  // namespace mpol::detail
