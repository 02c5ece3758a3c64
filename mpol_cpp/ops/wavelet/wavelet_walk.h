#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/wavelet/combine_rows.h>
#include <mpol_cpp/ops/wavelet/daubechies.h>

namespace mpol::ops {

/// A wavelet transform of one image after the other on the CPU, in memory of its own. By combine_rows() in both directions: a
/// level's rows are taken apart into even and odd pixels, whose neighbors are then other places of the same rows, and its columns
/// are combinations of whole rows.
template <typename T>
class WaveletWalk {
 public:
  WaveletWalk(const DaubechiesFilters& filters, std::int64_t levels, std::int64_t rows, std::int64_t columns);

  /// @param image   (rows, columns), contiguous, as the coefficients; another place than theirs
  void analyze(const T* image, T* coefficients);
  void synthesize(const T* coefficients, T* image);

 private:
  /// Rows of our own, with room for whole vectors behind each.
  struct Rows {
    Rows() = default;
    Rows(std::int64_t count, std::int64_t columns)
        : distance(AlignedArray<T>::padded(columns + room_behind_rows)), values(count * distance) {}
    T* row(std::int64_t i) const { return values.data() + i * distance; }
    std::int64_t distance = 0;
    AlignedArray<T> values;
  };

  std::int64_t taps() const { return static_cast<std::int64_t>(low_.size()); }  // 2 n
  void split_row(const T* row, std::int64_t half, T* low, T* high);
  void join_row(const T* low, const T* high, std::int64_t half, T* row);

  std::int64_t levels_, rows_, columns_;
  std::vector<T> low_, high_;                  // h and g
  std::vector<T> even_factors_, odd_factors_;  // h and g in turns: what a pixel of a pair takes of both halves
  std::vector<const T*> neighbors_;            // of a combination
  WaveletKernels<T> kernels_;
  Rows image_;                 // of low frequencies, as far as levels have gone
  Rows low_half_, high_half_;  // of each row
  Rows copies_;                // of coefficients, whose own rows have no room behind them
  Rows scratch_;               // even and odd pixels, or halves, continued periodically; two results
};

}  // namespace mpol::ops
