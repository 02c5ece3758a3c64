#include <mpol_cpp/ops/toeplitz_kernels.h>

#include <mpol_cpp/ops/isa_tables.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(ToeplitzKernels, toeplitz_kernels)

}  // namespace mpol::ops
