#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/ops/fft/fft_kernels.h>

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

  /// All of a line.
  FftSupport everything() const { return {length(), 0}; }

  /// Columns `panels.columns`, ascending, of the half spectra of `count` <= batch real lines, `distance` elements apart. Rows of
  /// panels are aligned to 64 bytes; columns of the last panel that stand for none become 0.
  /// @param support  other elements of the lines are not read and count as 0
  void forward_rows(const T* lines, std::int64_t distance, std::int64_t count, const FftSupport& support,
                    const FftPanels<T>& panels, T* scratch) const {
    kernels_.forward_rows(rows_, lines, distance, count, support, panels, scratch);
  }
  /// The adjoint: Re sum_k H_k e^{2 pi i k x / length} over the columns that are given. (An inverse transform counts those
  /// but 0 and length/2 twice.)
  /// @param support  other elements of the lines are not touched
  void adjoint_rows(const FftPanels<T>& panels, T* lines, std::int64_t distance, std::int64_t count, const FftSupport& support,
                    T* scratch) const {
    kernels_.adjoint_rows(rows_, panels, lines, distance, count, support, scratch);
  }

  /// The columns of a panel in place. Frequency k is then in row slots()[k], where the inverse transform expects it.
  void forward_panel(T* panel, T* scratch) const { kernels_.forward(columns_, panel, scratch); }
  void inverse_panel(T* panel, T* scratch) const { kernels_.inverse(columns_, panel, scratch); }
  const std::vector<std::int32_t>& slots() const { return columns_.slots; }
  /// The same where only a part of the columns is not 0 or is asked for. `rows` are those of the support, its tail first and
  /// then its head: a plane's middle, if the line begins there. The inverse leaves nothing in the panel.
  void forward_part(const T* rows, const FftSupport& support, T* panel, T* scratch) const {
    kernels_.forward_part(columns_, rows, support, panel, scratch);
  }
  void inverse_part(T* panel, T* rows, const FftSupport& support, T* scratch) const {
    kernels_.inverse_part(columns_, panel, rows, support, scratch);
  }
  /// What moves numbers between panels and columns.
  const FftKernels<T>& kernels() const { return kernels_; }

 private:
  FftKernels<T> kernels_;
  RealFftPlan<T> rows_;
  FftPlan<T> columns_;
  std::int64_t scratch_size_;
};

}  // namespace mpol::ops
