#pragma once

#include <vector>

#include <mpol_cpp/ops/simd/isa.h>

namespace mpol::testing {

/// Those that this processor has.
inline std::vector<Isa> instruction_sets() {
  std::vector<Isa> supported;
  for (const auto isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (isa_supported(isa)) supported.push_back(isa);
  }
  return supported;
}

}  // namespace mpol::testing
