#pragma once

#include <built_isas.h>  // which CMake writes

#include <mpol_cpp/ops/simd/isa.h>

// How the functions of a file that mpol_add_isa_sources compiles, once in the namespace of each instruction set, are found.

// Templates and names cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define MPOL_IN_NAMESPACE(name, ...) \
  namespace name {                   \
  __VA_ARGS__                        \
  }

// Those for which kernels are compiled (MPOL_ISAS of CMake).
#if MPOL_HAS_PORTABLE
#define MPOL_IN_PORTABLE(...) MPOL_IN_NAMESPACE(portable, __VA_ARGS__)
#define MPOL_LAST_ISA portable
#else
#define MPOL_IN_PORTABLE(...)
#endif
#if MPOL_HAS_AVX2
#define MPOL_IN_AVX2(...) MPOL_IN_NAMESPACE(avx2, __VA_ARGS__)
#define MPOL_IF_AVX2(isa, ...) (isa) == Isa::avx2 ? avx2::__VA_ARGS__:
#ifndef MPOL_LAST_ISA
#define MPOL_LAST_ISA avx2
#endif
#else
#define MPOL_IN_AVX2(...)
#define MPOL_IF_AVX2(isa, ...)
#endif
#if MPOL_HAS_AVX512
#define MPOL_IN_AVX512(...) MPOL_IN_NAMESPACE(avx512, __VA_ARGS__)
#define MPOL_IF_AVX512(isa, ...) (isa) == Isa::avx512 ? avx512::__VA_ARGS__:
#ifndef MPOL_LAST_ISA
#define MPOL_LAST_ISA avx512
#endif
#else
#define MPOL_IN_AVX512(...)
#define MPOL_IF_AVX512(isa, ...)
#endif

/// Declarations, in the namespace of each instruction set for which kernels are compiled.
#define MPOL_IN_EACH_ISA(...) MPOL_IN_PORTABLE(__VA_ARGS__) MPOL_IN_AVX2(__VA_ARGS__) MPOL_IN_AVX512(__VA_ARGS__)
/// The value of a call in the namespace of one of them.
#define MPOL_OF_ISA(isa, ...) \
  (static_cast<void>(isa), MPOL_IF_AVX512(isa, __VA_ARGS__) MPOL_IF_AVX2(isa, __VA_ARGS__) MPOL_LAST_ISA::__VA_ARGS__)

/// Defines `Table<T> name(Isa)`, which takes the table of an instruction set, for float and double: what
/// `template <typename T> Table<T> name()` gives there.
#define MPOL_DEFINE_TABLE_BY_ISA(Table, name)                                                  \
  MPOL_IN_EACH_ISA(template <typename T> Table<T> name(); extern template Table<float> name(); \
                   extern template Table<double> name();)                                      \
  template <typename T>                                                                        \
  Table<T> name(Isa isa) {                                                                     \
    return MPOL_OF_ISA(isa, name<T>());                                                        \
  }                                                                                            \
  template Table<float> name(Isa);                                                             \
  template Table<double> name(Isa);
// NOLINTEND(bugprone-macro-parentheses)
