#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/ops/fft_kernels.h>

namespace mpol::ops {

/// Transforms of the rows and columns of real images, planned once and then called from any number of threads, each call on
/// the calling thread alone. Unnormalised.
///
/// Lines are transformed `batch` at a time, one in each lane of a vector: no operation but the transposition at the door of
/// the rows moves a number to another lane, a line's result does not depend on its neighbours, and the order that a transform
/// leaves frequencies in costs nothing, because a reader finds each of them in a slot of its own.
///
/// A panel is what `batch` columns side by side are in memory: for each row their real and then their imaginary parts.
template <typename T>
class LineTransforms {
 public:
  static constexpr std::int64_t batch = fft_batch<T>;
  static constexpr std::int64_t row_size = 2 * batch;  ///< of a panel, elements of T

  /// @param length  of rows and columns, even; any prime factors (those above 13 make a transform about four times as long)
  /// @throws ValueError for an odd length
  explicit LineTransforms(std::int64_t length, Isa isa = selected_isa());

  std::int64_t length() const { return columns_.length; }
  /// Panels that hold so many columns.
  static std::int64_t panels(std::int64_t columns) { return (columns + batch - 1) / batch; }
  /// What a call is to be given as scratch memory, aligned to 64 bytes, in elements of T.
  std::int64_t scratch_size() const { return scratch_size_; }

  /// Columns `panels.columns` of the half spectra of `count` <= batch real lines, `distance` elements apart. Rows of panels
  /// are aligned to 64 bytes; columns of the last panel that stand for none become 0.
  void forward_rows(const T* lines, std::int64_t distance, std::int64_t count, const FftPanels<T>& panels, T* scratch) const {
    kernels_.forward_rows(rows_, lines, distance, count, panels, scratch);
  }
  /// The adjoint: Re sum_k H_k e^{2 pi i k x / length} over the columns that are given. (An inverse transform counts those
  /// but 0 and length/2 twice.)
  void adjoint_rows(const FftPanels<T>& panels, T* lines, std::int64_t distance, std::int64_t count, T* scratch) const {
    kernels_.adjoint_rows(rows_, panels, lines, distance, count, scratch);
  }

  /// The columns of a panel in place. Frequency k is then in row slots()[k], where the inverse transform expects it.
  void forward_panel(T* panel, T* scratch) const { kernels_.forward(columns_, panel, scratch); }
  void inverse_panel(T* panel, T* scratch) const { kernels_.inverse(columns_, panel, scratch); }
  const std::vector<std::int32_t>& slots() const { return columns_.slots; }
  /// What moves numbers between panels and columns.
  const FftKernels<T>& kernels() const { return kernels_; }

 private:
  FftKernels<T> kernels_;
  RealFftPlan<T> rows_;
  FftPlan<T> columns_;
  std::int64_t scratch_size_;
};

}  // namespace mpol::ops
