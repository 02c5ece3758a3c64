#include "catch.h"

#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/simd/isa.h>

#include "forced_isa.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("MPOL_ISA forces an instruction set that the processor has, and no other", "[ops][isa][quick]") {
  for (const auto isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    const ForcedIsa forced(to_string(isa));
    if (isa_supported(isa)) CHECK(selected_isa() == isa);
    else CHECK_THROWS_WITH(selected_isa(), ContainsSubstring("unset MPOL_ISA"));
  }
  const ForcedIsa unknown("sse9");
  CHECK_THROWS_AS(selected_isa(), ValueError);
}

TEST_CASE("without MPOL_ISA the best instruction set of the processor is taken", "[ops][isa][quick]") {
  const ForcedIsa empty("");
  CHECK(isa_supported(selected_isa()));
  CHECK_THAT(built_isas(), ContainsSubstring(std::string(to_string(selected_isa()))));
  if (isa_supported(Isa::avx512)) CHECK(selected_isa() == Isa::avx512);
}
