#pragma once

#include <cstdint>

namespace mpol::detail {

#ifdef MPOL_WITH_CUDA
inline constexpr bool compiled_with_cuda = true;
#else
inline constexpr bool compiled_with_cuda = false;
#endif

/// Free memory of a CUDA device as its driver reports it, bytes; 0 in a build without CUDA.
std::int64_t cuda_free_bytes(int index);

}  // namespace mpol::detail
