#include <mpol_cpp/ops/fused/cpu/fused_kernels.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(FusedKernels, fused_kernels)

}  // namespace mpol::ops
