#pragma once

#include <string>
#include <string_view>

namespace mpol {

/// The instruction sets for which the hand-written CPU kernels are compiled. Results are the same bit for bit on one of
/// them for any number of threads, and equal to rounding between them.
enum class Isa {
  portable,  ///< what every x86-64 processor has
  avx2,      ///< AVX2 and FMA
  avx512,    ///< AVX-512 F, BW, CD, DQ, VL
};

/// "portable", "avx2" or "avx512".
std::string_view to_string(Isa isa);

/// True when this build has kernels of that instruction set and this processor can run them.
bool isa_supported(Isa isa);

/// Those for which this build has kernels (MPOL_ISAS of CMake), as in "portable, avx2, avx512".
std::string built_isas();

/// The instruction set that the kernels use: the best one that the processor has, or the one that the environment
/// variable MPOL_ISA names.
/// @throws ValueError when MPOL_ISA names none, or one that the processor or this build does not have; when the processor has
///         none of this build's
Isa selected_isa();

}  // namespace mpol
