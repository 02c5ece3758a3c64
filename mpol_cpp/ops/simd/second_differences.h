#pragma once

// Second differences of image rows (losses::tv_slope) in vectors; for files that mpol_add_isa_sources compiles.
#include <mpol_cpp/ops/simd/curvature_row.h>
#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {

/// From row to row, from column to column, and the square root of two times mixed ones.
template <typename T>
struct SecondDifferences {
  Vector<T> rows, columns, mixed;
};

/// Those of some pixels of a row, from the rows before and after it. @param count  of them; nothing beyond the next is touched
template <typename T>
MPOL_INLINE SecondDifferences<T> second_differences(const T* below, const T* row, const T* above, std::int64_t count = lanes<T>) {
  const auto at = [count](const T* first) __attribute__((always_inline)) { return load_first<T>(first, count); };
  const auto center = at(row), right = at(row + 1), up = at(above);
  const auto root_of_two = static_cast<T>(1.41421356237309504880);
  return {up - T(2) * center + at(below), right - T(2) * center + at(row - 1),
          root_of_two * (at(above + 1) - up - right + center)};
}

/// The adjoint at some pixels of a row, from the column i on.
template <typename T>
MPOL_INLINE Vector<T> adjoint_second_differences(const CurvatureRow<const T>& below, const CurvatureRow<const T>& own,
                                                 const CurvatureRow<const T>& above, std::int64_t i) {
  const auto root_of_two = static_cast<T>(1.41421356237309504880);
  const auto rows = load<T>(below.rows + i) - T(2) * load<T>(own.rows + i) + load<T>(above.rows + i);
  const auto columns = load<T>(own.columns + i - 1) - T(2) * load<T>(own.columns + i) + load<T>(own.columns + i + 1);
  const auto mixed =
      load<T>(below.mixed + i - 1) - load<T>(below.mixed + i) - load<T>(own.mixed + i - 1) + load<T>(own.mixed + i);
  return rows + columns + root_of_two * mixed;
}

}  // namespace mpol::ops::MPOL_ISA
