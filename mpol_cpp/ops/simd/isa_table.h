#pragma once

#include <mpol_cpp/ops/simd/isa.h>

// How the functions of a file that mpol_add_isa_sources compiles, once in the namespace of each instruction set, are found.

// Templates and names cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define MPOL_IN_NAMESPACE(name, ...) \
  namespace name {                   \
  __VA_ARGS__                        \
  }

/// Declarations, in the namespace of each instruction set for which kernels are compiled.
/// MPOL_OF_ISA(isa, call): the value of a call in the namespace of one of them.
#if defined(__x86_64__)
#define MPOL_IN_EACH_ISA(...)              \
  MPOL_IN_NAMESPACE(portable, __VA_ARGS__) \
  MPOL_IN_NAMESPACE(avx2, __VA_ARGS__)     \
  MPOL_IN_NAMESPACE(avx512, __VA_ARGS__)
#define MPOL_OF_ISA(isa, ...) \
  ((isa) == Isa::avx512 ? avx512::__VA_ARGS__ : (isa) == Isa::avx2 ? avx2::__VA_ARGS__ : portable::__VA_ARGS__)
#else
#define MPOL_IN_EACH_ISA(...) MPOL_IN_NAMESPACE(portable, __VA_ARGS__)
#define MPOL_OF_ISA(isa, ...) (static_cast<void>(isa), portable::__VA_ARGS__)
#endif

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
