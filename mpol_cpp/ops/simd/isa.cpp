#include <mpol_cpp/ops/simd/isa.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include <built_isas.h>  // which CMake writes

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::array all_isas{Isa::portable, Isa::avx2, Isa::avx512};  // the best one last

bool is_built(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return MPOL_HAS_AVX512;
    case Isa::avx2:
      return MPOL_HAS_AVX2;
    case Isa::portable:
      return MPOL_HAS_PORTABLE;
  }
  return false;
}

bool processor_has(Isa isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  if (isa == Isa::avx2) return avx2;
  if (isa == Isa::avx512) {
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return isa == Isa::portable;
}

Isa best_isa() {
  const auto best = std::find_if(all_isas.rbegin(), all_isas.rend(), isa_supported);
  if (best != all_isas.rend()) return *best;
  throw ValueError(fmt::format(
      "this build has kernels for {} alone, which this processor does not have: build it here, or with -DMPOL_ISAS=all",
      built_isas()));
}

Isa isa_named(std::string_view name) {
  for (const auto isa : all_isas) {
    if (to_string(isa) == name) return isa;
  }
  throw ValueError(fmt::format("MPOL_ISA is '{}'; it must be portable, avx2 or avx512: correct it or unset it", name));
}

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::portable:
      break;
  }
  return "portable";
}

bool isa_supported(Isa isa) { return is_built(isa) && processor_has(isa); }

std::string built_isas() {
  std::string names;
  for (const auto isa : all_isas) {
    if (is_built(isa)) names += (names.empty() ? "" : ", ") + std::string(to_string(isa));
  }
  return names;
}

Isa selected_isa() {
  const char* forced = std::getenv("MPOL_ISA");
  if (forced == nullptr || *forced == '\0') return best_isa();
  const auto isa = isa_named(forced);
  if (!is_built(isa)) {
    throw ValueError(fmt::format(
        "MPOL_ISA is {}, for which this build has no kernels, only for {}: unset MPOL_ISA, or build with -DMPOL_ISAS=all", forced,
        built_isas()));
  }
  if (!isa_supported(isa)) {
    throw ValueError(fmt::format("MPOL_ISA is {}, which this processor does not have; the best it has is {}: unset MPOL_ISA",
                                 forced, to_string(best_isa())));
  }
  return isa;
}

}  // namespace mpol
