#include <mpol_cpp/ops/hann/hann_rows.h>

#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_DEFINE_TABLE_BY_ISA(HannRows, hann_rows)

}  // namespace mpol::ops
