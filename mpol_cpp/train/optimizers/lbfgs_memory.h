#pragma once

#include <cstdint>

#include <mpol_cpp/ops/lbfgs/lbfgs_memory.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol::detail {

/// The memory of GpuLbfgs or CpuLbfgs in the form of optimizer_state, which LibTorch's L-BFGS takes up, and the other way
/// round. Nothing where no step was taken.
NamedTensors save_lbfgs(const ops::LbfgsMemory& memory, torch::Dtype dtype);

/// @param elements  of the parameters
/// @throws FileError when names or sizes do not fit
ops::LbfgsMemory load_lbfgs(NamedTensors saved, std::int64_t elements);

}  // namespace mpol::detail
