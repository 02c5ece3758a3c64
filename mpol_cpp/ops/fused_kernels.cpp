#include <mpol_cpp/ops/fused_kernels.h>

#include <mpol_cpp/ops/isa_tables.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(FusedKernels, fused_kernels)

}  // namespace mpol::ops
