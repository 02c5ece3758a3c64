#pragma once

#include <cstdint>

#include <mpol_cpp/ops/proximal/pixel_cut.h>
#include <mpol_cpp/ops/simd/curvature_row.h>
#include <mpol_cpp/ops/simd/isa.h>

/// What solvers with proximal maps do to one row of an image, in one table for each instruction set. Rows of scratch memory and
/// of dual images are ours: they have `proximal_margin` zeros before and after them and are worked off in whole vectors, zeros
/// beyond the last pixel. Rows of the caller are touched in their n elements only. Pointers do not overlap.
namespace mpol::ops {

/// Elements of room before and after each row of our own.
inline constexpr std::int64_t proximal_margin = 16;

/// A dual image of total variation at one row: what multiplies differences to the next row and to the next column.
template <typename T>
struct DualRow {
  T *rows, *columns;
};

/// A row of our own and those beside it.
template <typename T>
struct RowAndNeighbors {
  const T *below, *own, *above;
};

/// Another dual image at one row: what is taken of it, or the momentum of its look ahead.
template <typename T>
struct DualTerm {
  const T *now = nullptr, *before = nullptr;
  T factor = 0;
};

/// Products of the step between two points of a fit with the gradients there.
struct PointSums {
  double along = 0;    ///< (y' - y) (g + g')
  double bends = 0;    ///< (y' - y) (g' - g)
  double lengths = 0;  ///< |y' - y|^2
  PointSums& operator+=(const PointSums& other) {
    along += other.along;
    bends += other.bends;
    lengths += other.lengths;
    return *this;
  }
};

/// Coefficients of POGM's extrapolation (solvers/pogm.h).
struct ExtrapolationFactors {
  double slope, w_factor, y_factor, z_factor;
};

template <typename T>
struct ProximalKernels {
  /// v = p + momentum (p - before), and adjoint = D^T v there. @param below  v of the row before: only its `rows`
  void (*look_ahead)(const DualRow<T>& p, const DualRow<T>& before, T momentum, const T* below, const DualRow<T>& v, T* adjoint,
                     std::int64_t n);
  /// out: the Hann kernel on the rows. @param inside  1 up to the last pixel, then 0
  void (*smooth)(const RowAndNeighbors<T>& rows, const T* inside, T* out, std::int64_t n);
  /// x = cut(q - weight slope) m, with the Hann kernel on the slopes first if they are to be smooth; m null: 1.
  void (*shrink)(const T* q, const RowAndNeighbors<T>& slopes, T weight, bool smooth, PixelCut<T> cut, const T* mask,
                 const T* inside, T* x, std::int64_t n);
  /// raised = v + step D y, each vector longer than 1 cut to length 1.
  /// @param p        of this row
  /// @param counted  1 where differences count, 0 from the last column on
  /// @return         (v - raised) (raised - p)
  double (*ascend)(const T* y, const T* next, T step, const DualRow<T>& v, const DualRow<T>& p, const T* counted,
                   const DualRow<T>& raised, std::int64_t n);

  /// v = p + momentum (p - before)
  void (*look_ahead_curvature)(const CurvatureRow<T>& p, const CurvatureRow<T>& before, T momentum, const CurvatureRow<T>& v,
                               std::int64_t n);
  /// slope = of_slope slope + weight E^T v, E the second differences of losses::tv_slope. @param below, above  v of the rows
  /// beside
  void (*add_curvature)(const CurvatureRow<const T>& below, const CurvatureRow<const T>& v, const CurvatureRow<const T>& above,
                        T weight, T of_slope, T* slope, std::int64_t n);
  /// raised = v + step E y, each vector longer than 1 cut to length 1. @param counted  1 where second differences count
  /// @return (v - raised) (raised - p)
  double (*ascend_curvature)(const T* below, const T* y, const T* above, T step, const CurvatureRow<T>& v,
                             const CurvatureRow<T>& p, const T* counted, const CurvatureRow<T>& raised, std::int64_t n);

  /// slope = of_slope slope + sum of factor (p + momentum (p - before)) over the terms
  void (*gather)(const DualTerm<T>* terms, int count, T momentum, T of_slope, T* slope, std::int64_t n);
  /// raised = v + step (next - y), between -1 and 1, v ahead of a term whose factor is the momentum. Rows of two channels.
  /// @return  (v - raised) (raised - p)
  double (*ascend_channels)(const T* y, const T* next, T step, const DualTerm<T>& p, T* raised, std::int64_t n);
  /// raised = v + step y, and its squares added to others.
  void (*ascend_spectra)(const T* y, T step, const DualTerm<T>& p, T* raised, T* squares, std::int64_t n);
  /// raised times the factor. @return (v - raised) (raised - p)
  double (*cut_spectra)(const T* factor, const DualTerm<T>& p, T* raised, std::int64_t n);

  /// sum sqrt(|D y|^2 + epsilon) over all columns but the last. `row` and `next` are the caller's.
  double (*variation)(const T* row, const T* next, double epsilon, std::int64_t n);
  /// sum sqrt(|E y|^2 + epsilon) over all columns but the first and the last. Rows of the caller.
  double (*curvature)(const T* below, const T* row, const T* above, double epsilon, std::int64_t n);

  double (*sum)(const T* row, std::int64_t n);

  /// values = factor values + shift, n of them
  void (*scale)(T* values, double factor, double shift, std::int64_t n);

  /// w' and z' of POGM, over w and z, for n values.
  void (*extrapolate)(const T* y, const T* gradient, const ExtrapolationFactors& factors, T* w, T* z, std::int64_t n);
  PointSums (*compare)(const T* y, const T* gradient, const T* next, const T* next_gradient, std::int64_t n);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
ProximalKernels<T> proximal_kernels(Isa isa);

}  // namespace mpol::ops
