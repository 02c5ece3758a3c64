#pragma once

// The formulas of several regularizers together; C++17 without LibTorch, as formula.h.
#include <type_traits>

#include <mpol_cpp/regularizers/list.h>

namespace mpol::regularizers {

/// The formulas of some regularizers, with the weights and settings of one problem in the precision T of its images.
template <typename T, typename Some>
struct Formulas;

template <typename T>
struct Formulas<T, Kinds<>> {
  template <typename Terms>
  MPOL_FORMULA explicit Formulas(const Terms&) {}
};

template <typename T, TermKind kind, TermKind... others>
struct Formulas<T, Kinds<kind, others...>> {
  typename Known<kind>::template Formula<T> own;
  Formulas<T, Kinds<others...>> rest;

  /// @param terms  has weight(TermKind) and settings(TermKind)
  template <typename Terms>
  MPOL_FORMULA explicit Formulas(const Terms& terms) : own(terms.weight(kind), terms.settings(kind)), rest(terms) {}

  /// The sum of all slopes at an input as Driver names it. @param add  is called with a constant of TermKind and each value
  template <typename Math, typename Add, typename... Inputs>
  MPOL_FORMULA typename Math::Value slope(Add& add, const Inputs&... inputs) const {
    const auto found = own.template at<Math>(inputs...);
    add(std::integral_constant<TermKind, kind>{}, found.value);
    if constexpr (sizeof...(others) == 0) return found.slope;
    else return found.slope + rest.template slope<Math>(add, inputs...);
  }

  /// The same of those for which has(TermKind) says so.
  template <typename Math, typename Has, typename Add, typename... Inputs>
  MPOL_FORMULA typename Math::Value slope_where(const Has& has, Add& add, const Inputs&... inputs) const {
    auto slope = Math::constant(T(0));
    if (has(kind)) {
      const auto found = own.template at<Math>(inputs...);
      add(std::integral_constant<TermKind, kind>{}, found.value);
      slope = found.slope;
    }
    if constexpr (sizeof...(others) > 0) slope += rest.template slope_where<Math>(has, add, inputs...);
    return slope;
  }
};

/// Whether any of some regularizers is there. @param has  says so of one TermKind
template <typename Has, TermKind... kinds>
MPOL_FORMULA bool has_any(Kinds<kinds...>, const Has& has) {
  return (has(kinds) || ...);
}

/// Calls run with each of some regularizers, as a constant of TermKind; on the host.
template <typename Run, TermKind... kinds>
[[gnu::always_inline]] inline void for_each(Kinds<kinds...>, const Run& run) {
  (run(std::integral_constant<TermKind, kinds>{}), ...);
}

}  // namespace mpol::regularizers
