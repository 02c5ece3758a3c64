#pragma once

#include <cstdint>
#include <memory>

#include <ATen/ops/from_blob.h>
#include <torch/types.h>

#include <mpol_cpp/ops/memory/work_memory.h>

namespace mpol::gridding {

/// An uninitialised tensor (count) on the CPU whose memory goes back to the system with it, if it is large.
inline torch::Tensor in_own_memory(std::int64_t count, torch::Dtype dtype) {
  const auto memory = std::make_shared<ops::WorkMemory>(static_cast<std::size_t>(count) * c10::elementSize(dtype));
  return at::from_blob(
      memory->data(), {count}, [memory](void*) {}, dtype);
}

}  // namespace mpol::gridding
