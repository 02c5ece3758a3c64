#include <mpol_cpp/ops/toeplitz/toeplitz_kernels.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(ToeplitzKernels, toeplitz_kernels)

}  // namespace mpol::ops
