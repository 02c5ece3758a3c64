#include <mpol_cpp/ops/lbfgs/lbfgs_row_kernels.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(LbfgsRowKernels, lbfgs_row_kernels)

}  // namespace mpol::ops
