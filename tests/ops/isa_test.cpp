#include "catch.h"

#include <cstdlib>
#include <optional>
#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/isa.h>

using namespace mpol;

namespace {

/// Sets MPOL_ISA while it lives.
class ForcedIsa {
 public:
  explicit ForcedIsa(const char* name) {
    if (const char* before = std::getenv("MPOL_ISA")) before_ = before;
    setenv("MPOL_ISA", name, 1);
  }
  ~ForcedIsa() {
    if (before_) setenv("MPOL_ISA", before_->c_str(), 1);
    else unsetenv("MPOL_ISA");
  }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("MPOL_ISA forces an instruction set that the processor has, and no other", "[ops][isa][quick]") {
  for (const auto isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    const ForcedIsa forced(std::string(to_string(isa)).c_str());
    if (isa_supported(isa)) CHECK(selected_isa() == isa);
    else CHECK_THROWS_AS(selected_isa(), ValueError);
  }
  const ForcedIsa unknown("sse9");
  CHECK_THROWS_AS(selected_isa(), ValueError);
}

TEST_CASE("without MPOL_ISA the best instruction set of the processor is taken", "[ops][isa][quick]") {
  const ForcedIsa empty("");
  CHECK(isa_supported(selected_isa()));
  CHECK(isa_supported(Isa::portable));
  if (isa_supported(Isa::avx512)) CHECK(selected_isa() == Isa::avx512);
}
