#include <mpol_cpp/ops/rotation/ring_kernels.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(RingKernels, ring_kernels)

}  // namespace mpol::ops
