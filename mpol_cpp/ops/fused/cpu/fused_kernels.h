#pragma once

#include <cstdint>

#include <mpol_cpp/ops/fused/fused_terms.h>
#include <mpol_cpp/ops/simd/curvature_row.h>
#include <mpol_cpp/ops/simd/isa.h>
#include <mpol_cpp/ops/simd/lane_sum.h>

/// What the fused step does to one row or panel of columns of an image, in one table for each instruction set. Rows that are ours
/// have `row_margin` elements of room before and after them and are worked off in whole vectors: elements beyond the
/// last pixel are written as 0 unless a kernel says otherwise. Rows of the caller (base pixels, moments) are touched in
/// their n elements only. Pointers do not overlap unless they are equal.
namespace mpol::ops {

/// Elements of room before and after each row of scratch memory.
inline constexpr std::int64_t row_margin = 16;

/// Image quantities that a pass over rows sums up, unweighted.
struct RowSums {
  LaneSum terms[regularizer_count];
  LaneSum parameters;
};

template <typename T>
struct UpdateRow {
  T *base, *first, *second;  // first and second are null where the update has none
  T* gradient;               // null but for FusedUpdate::none
};

struct UpdateSettings {
  double rate = 0, momentum = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = adam_epsilon, second_scale = 1;
};

/// Occupied cells of one panel (PanelCells).
template <typename T>
struct CellRange {
  const std::int32_t* place;
  const T *weight, *real, *imag;
  std::int64_t count;
};

/// A row of one channel, and where those of the others lie.
template <typename T>
struct ChannelRows {
  const T* row;
  std::int64_t distance;  // elements to the same row of the next channel
  std::int64_t channel, nchan;
};

template <typename T>
struct FusedKernels {
  /// smoothed = row Hann of softplus(base); `mapped` is scratch whose margins are 0.
  void (*map_row)(const T* base, T* mapped, T* smoothed, std::int64_t n);
  /// out = centre/2 + (below + above)/4
  void (*blend_rows)(const T* below, const T* center, const T* above, T* out, std::int64_t n);

  /// Replaces the panel V of n rows by factor * w (scale V - d) at the cells and 0 elsewhere; returns
  /// sum w |scale V - d|^2. `scratch` holds 2 (cells.count + row_margin) values.
  double (*weigh_residual)(T* panel, std::int64_t n, const CellRange<T>& cells, double scale, double factor, T* scratch);

  /// slopes = what the regularizer of the half plane makes of the panel V of n rows, with one weight for each of its complex
  /// numbers; returns the sum of its values.
  double (*weigh_power)(const T* panel, std::int64_t n, const T* weight, const FusedTerms& terms, T* slopes);
  /// Adds the n rows of a panel to those of another.
  void (*add_panel)(T* panel, const T* values, std::int64_t n);

  /// Derivatives of the regularizers of differences by the forward differences of one row to those along l (`along`) and
  /// to the next row (`across`): 0 in the last pixel. The element before along[0] must be 0 already.
  void (*differences)(const T* row, const T* next, T* along, T* across, std::int64_t n, const FusedTerms& terms, RowSums& sums);
  /// gradient = likelihood + derivatives of the regularizers of pixels and, where `along` is not null, of the differences.
  void (*image_gradient)(const T* row, const T* likelihood, const T* along, const T* across, const T* across_below, T* gradient,
                         std::int64_t n, const FusedTerms& terms, RowSums& sums);
  /// Derivatives of the regularizers of curvatures by the second differences of a row: 0 in the first and last pixel.
  void (*curvatures)(const T* below, const T* row, const T* above, const CurvatureRow<T>& slopes, std::int64_t n,
                     const FusedTerms& terms, RowSums& sums);
  /// Adds what the slopes of three rows make of the pixels between them.
  void (*curvature_gradient)(const CurvatureRow<const T>& below, const CurvatureRow<const T>& slopes,
                             const CurvatureRow<const T>& above, T* gradient, std::int64_t n);
  /// Adds the derivatives of the regularizers of channels. The same rows of neighbouring channels lie around this one.
  void (*channel_gradient)(const ChannelRows<T>& rows, T* gradient, std::int64_t n, const FusedTerms& terms, RowSums& sums);
  /// squares = sum over all channels of the squares of this row.
  void (*spectrum_squares)(const ChannelRows<T>& rows, T* squares, std::int64_t n);
  /// Adds the derivatives of the regularizers of spectra, whose values the first channel sums up.
  void (*spectrum_gradient)(const ChannelRows<T>& rows, const T* squares, T* gradient, std::int64_t n, const FusedTerms& terms,
                            RowSums& sums);

  /// Hann adjoint of three gradient rows, derivative of softplus, update.
  void (*update)(FusedUpdate kind, const T* below, const T* center, const T* above, T* blended, const UpdateRow<T>& row,
                 std::int64_t n, const UpdateSettings& settings, LaneSum& parameters);

  /// The elementary functions, for n values each: e^-|x|, ln(1 + x) for x in [0, 1], ln x, 1/sqrt(x), softplus and its
  /// derivative.
  struct Functions {
    void (*exp_of_negative)(const T* x, T* y, std::int64_t n);
    void (*log1p_of_fraction)(const T* x, T* y, std::int64_t n);
    void (*logarithm)(const T* x, T* y, std::int64_t n);
    void (*reciprocal_square_root)(const T* x, T* y, std::int64_t n);
    void (*square_root)(const T* x, T* y, std::int64_t n);
    void (*softplus)(const T* x, T* y, std::int64_t n);
    void (*softplus_derivative)(const T* x, T* y, std::int64_t n);
  } functions;
};

/// The kernels of an instruction set that this processor has.
template <typename T>
FusedKernels<T> fused_kernels(Isa isa);

}  // namespace mpol::ops
