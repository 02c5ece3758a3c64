#include <mpol_cpp/ops/proximal/proximal_kernels.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(ProximalKernels, proximal_kernels)

}  // namespace mpol::ops
