#include <mpol_cpp/ops/wavelet/combine_rows.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(WaveletKernels, wavelet_kernels)

}  // namespace mpol::ops
