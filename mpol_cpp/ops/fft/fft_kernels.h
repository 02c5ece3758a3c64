#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <mpol_cpp/ops/simd/isa.h>

/// What LineTransforms computes with, in one table for each instruction set. A complex number is a row of a panel: the real
/// parts of `fft_batch` lines and then their imaginary parts, so that every operation is one on whole vectors.
namespace mpol::ops {

/// Lines that are transformed together: as many as a cache line has numbers.
template <typename T>
inline constexpr std::int64_t fft_batch = 64 / static_cast<std::int64_t>(sizeof(T));

/// One step of a transform of `length` numbers, which are `radix` transforms of length/radix in turn.
template <typename T>
struct FftStage {
  int radix;
  std::int64_t length;
  std::vector<T> twiddles;  // e^{-2 pi i j q / length}, q = 1 ... radix - 1, for j = 1 ... length/radix - 1
  std::vector<T> roots;     // cos and sin of 2 pi k / radix; of odd radices
};

/// A complex transform along the rows of a panel.
template <typename T>
struct FftPlan {
  FftPlan(std::int64_t size, int largest_radix);

  std::int64_t length;
  std::vector<FftStage<T>> stages;
  std::vector<std::int32_t> slots;  // the row of each frequency of the transform

  /// A length with a prime factor too large for a stage is done as a convolution (Bluestein 1970) of this longer length.
  std::unique_ptr<FftPlan> convolution;
  std::vector<T> chirp;   // e^{-i pi j^2 / length}
  std::vector<T> filter;  // transform of the conjugate chirp in the order of its slots, divided by its length

  /// Elements of T.
  std::int64_t scratch_size() const { return convolution ? 2 * fft_batch<T> * convolution->length : 0; }
};

/// Where the columns of half spectra lie: panels of `fft_batch` columns, `distance` elements apart. The last panel may have
/// columns that stand for none.
template <typename T>
struct FftPanels {
  const std::int32_t* columns;  // frequencies, ascending, at most half the length of a line each
  std::int64_t count;
  T* first;  // the row, in the first panel, of the first line
  std::int64_t distance;
};

/// The numbers of a line that are not 0, or that are asked for: the first `head` and the last `tail`.
struct FftSupport {
  std::int64_t head, tail;
};

/// The transform of real lines by the complex one of half their length.
template <typename T>
struct RealFftPlan {
  RealFftPlan(std::int64_t length, int largest_radix);

  FftPlan<T> half;
  std::vector<T> turns;  // cos and sin of 2 pi k / length, halved, for k = 0 ... length/2

  /// Elements of T.
  std::int64_t scratch_size() const { return 2 * fft_batch<T> * half.length + half.scratch_size(); }
};

template <typename T>
struct FftKernels {
  int largest_radix;  // that a plan for these kernels may have
  void (*forward)(const FftPlan<T>& plan, T* panel, T* scratch);
  void (*inverse)(const FftPlan<T>& plan, T* panel, T* scratch);
  /// From the rows of the support, tail first, to a panel of all rows, and back, where the panel is lost.
  void (*forward_part)(const FftPlan<T>& plan, const T* rows, const FftSupport& support, T* panel, T* scratch);
  void (*inverse_part)(const FftPlan<T>& plan, T* panel, T* rows, const FftSupport& support, T* scratch);
  void (*forward_rows)(const RealFftPlan<T>& plan, const T* lines, std::int64_t distance, std::int64_t count,
                       const FftSupport& support, const FftPanels<T>& panels, T* scratch);
  void (*adjoint_rows)(const RealFftPlan<T>& plan, const FftPanels<T>& panels, T* lines, std::int64_t distance,
                       std::int64_t count, const FftSupport& support, T* scratch);

  /// Rows rows[0 ... count - 1] of the first `kept` columns of a panel to complex numbers side by side, columns `distance`
  /// elements apart ...
  void (*panel_to_columns)(const T* panel, const std::int32_t* rows, std::int64_t count, T* columns, std::int64_t distance,
                           std::int64_t kept);
  /// ... and back; columns of the panel that are not kept become 0 in these rows.
  void (*columns_to_panel)(const T* columns, std::int64_t distance, std::int64_t kept, const std::int32_t* rows,
                           std::int64_t count, T* panel);
};

/// The kernels of an instruction set that this processor has.
template <typename T>
FftKernels<T> fft_kernels(Isa isa);

}  // namespace mpol::ops
