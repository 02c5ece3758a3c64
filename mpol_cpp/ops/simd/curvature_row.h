#pragma once

namespace mpol::ops {

/// What multiplies second differences (losses::tv_slope) at one row: along columns, along rows, and the square root of two times
/// mixed ones.
template <typename T>
struct CurvatureRow {
  T *rows, *columns, *mixed;

  operator CurvatureRow<const T>() const { return {rows, columns, mixed}; }  ///< to be read
};

}  // namespace mpol::ops
