#pragma once

#include <mpol_cpp/ops/simd/isa.h>

// A table of kernels is made by `template <typename T> Table<T> name()` in a file that mpol_add_isa_sources compiles, once in
// the namespace of each instruction set.

// Templates and names cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define MPOL_DECLARE_ISA_TABLE(isa, Table, name) \
  namespace isa {                                \
  template <typename T>                          \
  Table<T> name();                               \
  extern template Table<float> name();           \
  extern template Table<double> name();          \
  }

#if defined(__x86_64__)
#define MPOL_DECLARE_WIDE_ISA_TABLES(Table, name) \
  MPOL_DECLARE_ISA_TABLE(avx2, Table, name)       \
  MPOL_DECLARE_ISA_TABLE(avx512, Table, name)
#define MPOL_TAKE_WIDE_ISA_TABLE(name)              \
  if (isa == Isa::avx512) return avx512::name<T>(); \
  if (isa == Isa::avx2) return avx2::name<T>();
#else
#define MPOL_DECLARE_WIDE_ISA_TABLES(Table, name)
#define MPOL_TAKE_WIDE_ISA_TABLE(name)
#endif

/// Defines `Table<T> name(Isa)`, which takes the table of an instruction set, for float and double.
#define MPOL_DEFINE_TABLE_BY_ISA(Table, name)   \
  MPOL_DECLARE_ISA_TABLE(portable, Table, name) \
  MPOL_DECLARE_WIDE_ISA_TABLES(Table, name)     \
  template <typename T>                         \
  Table<T> name([[maybe_unused]] Isa isa) {     \
    MPOL_TAKE_WIDE_ISA_TABLE(name)              \
    return portable::name<T>();                 \
  }                                             \
  template Table<float> name(Isa);              \
  template Table<double> name(Isa);
// NOLINTEND(bugprone-macro-parentheses)
