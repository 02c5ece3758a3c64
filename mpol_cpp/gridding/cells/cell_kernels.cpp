#include <mpol_cpp/gridding/cells/cell_kernels.h>

namespace mpol::gridding {

namespace portable {
CellKernels cell_kernels();
}
#if defined(__x86_64__)
namespace avx2 {
CellKernels cell_kernels();
}
namespace avx512 {
CellKernels cell_kernels();
}
#endif

CellKernels cell_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::cell_kernels();
  if (isa == Isa::avx2) return avx2::cell_kernels();
#endif
  return portable::cell_kernels();
}

}  // namespace mpol::gridding
