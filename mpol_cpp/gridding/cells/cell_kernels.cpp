#include <mpol_cpp/gridding/cells/cell_kernels.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::gridding {

MPOL_IN_EACH_ISA(CellKernels cell_kernels();)

CellKernels cell_kernels(Isa isa) { return MPOL_OF_ISA(isa, cell_kernels()); }

}  // namespace mpol::gridding
