#include <mpol_cpp/ops/correlation/correlation_kernels.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(CorrelationKernels, correlation_kernels)

}  // namespace mpol::ops
