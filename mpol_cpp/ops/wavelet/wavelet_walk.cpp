#include <mpol_cpp/ops/wavelet/wavelet_walk.h>

#include <algorithm>

namespace mpol::ops {

template <typename T>
WaveletWalk<T>::WaveletWalk(const DaubechiesFilters& filters, std::int64_t levels, std::int64_t rows, std::int64_t columns)
    : levels_(levels),
      rows_(rows),
      columns_(columns),
      low_(filters.low.begin(), filters.low.end()),
      high_(filters.high.begin(), filters.high.end()),
      neighbors_(filters.low.size()),
      kernels_(wavelet_kernels<T>(selected_isa())),
      image_(rows, columns),
      low_half_(rows, columns / 2),
      high_half_(rows, columns / 2),
      copies_(rows, columns / 2),
      scratch_(4, columns / 2 + static_cast<std::int64_t>(filters.low.size())) {
  for (std::size_t i = 0; i < low_.size(); i += 2) {
    even_factors_.insert(even_factors_.end(), {low_[i], high_[i]});
    odd_factors_.insert(odd_factors_.end(), {low_[i + 1], high_[i + 1]});
  }
}

/// low[j] = sum_k h[k] row[2 j + k], high alike with g.
template <typename T>
void WaveletWalk<T>::split_row(const T* row, std::int64_t half, T* low, T* high) {
  T *even = scratch_.row(0), *odd = scratch_.row(1);
  for (std::int64_t j = 0; j < half; ++j) even[j] = row[2 * j], odd[j] = row[2 * j + 1];
  for (std::int64_t j = half; j < half + taps() / 2; ++j) even[j] = even[j - half], odd[j] = odd[j - half];
  for (std::int64_t k = 0; k < taps(); ++k) neighbors_[static_cast<std::size_t>(k)] = (k % 2 == 0 ? even : odd) + k / 2;
  kernels_.combine_rows(neighbors_.data(), low_.data(), high_.data(), static_cast<int>(taps()), low, high, half);
}

/// row[2 p + s] = sum_i h[2 i + s] low[p - i] + g[2 i + s] high[p - i].
template <typename T>
void WaveletWalk<T>::join_row(const T* low, const T* high, std::int64_t half, T* row) {
  const auto reach = taps() / 2 - 1;
  const auto continued = [&](const T* values, std::int64_t which) {  // to the left: place `reach` is the first one
    T* own = scratch_.row(which) + reach;
    std::copy_n(values, half, own);
    for (std::int64_t j = 1; j <= reach; ++j) own[-j] = own[(half - j % half) % half];
    return own;
  };
  const T *own_low = continued(low, 0), *own_high = continued(high, 1);
  for (std::int64_t i = 0; i <= reach; ++i) {
    neighbors_[static_cast<std::size_t>(2 * i)] = own_low - i;
    neighbors_[static_cast<std::size_t>(2 * i + 1)] = own_high - i;
  }
  T *even = scratch_.row(2), *odd = scratch_.row(3);
  kernels_.combine_rows(neighbors_.data(), even_factors_.data(), odd_factors_.data(), static_cast<int>(taps()), even, odd, half);
  for (std::int64_t j = 0; j < half; ++j) row[2 * j] = even[j], row[2 * j + 1] = odd[j];
}

template <typename T>
void WaveletWalk<T>::analyze(const T* image, T* coefficients) {
  T *low = scratch_.row(2), *high = scratch_.row(3);
  for (std::int64_t level = 0; level < levels_; ++level) {
    const auto rows = rows_ >> level, half = columns_ >> (level + 1);
    for (std::int64_t r = 0; r < rows; ++r)
      split_row(level == 0 ? image + r * columns_ : image_.row(r), half, low_half_.row(r), high_half_.row(r));
    const bool is_last = level + 1 == levels_;
    for (const auto* side : {&low_half_, &high_half_}) {
      const auto column = side == &low_half_ ? 0 : half;
      for (std::int64_t p = 0; p < rows / 2; ++p) {
        for (std::int64_t k = 0; k < taps(); ++k) neighbors_[static_cast<std::size_t>(k)] = side->row((2 * p + k) % rows);
        kernels_.combine_rows(neighbors_.data(), low_.data(), high_.data(), static_cast<int>(taps()), low, high, half);
        const bool goes_on = column == 0 && !is_last;
        std::copy_n(low, half, goes_on ? image_.row(p) : coefficients + p * columns_ + column);
        std::copy_n(high, half, coefficients + (rows / 2 + p) * columns_ + column);
      }
    }
  }
}

template <typename T>
void WaveletWalk<T>::synthesize(const T* coefficients, T* image) {
  Rows& joined = image_;
  T *even = scratch_.row(2), *odd = scratch_.row(3);
  for (auto level = levels_; level-- > 0;) {
    const auto rows = rows_ >> level, half = columns_ >> (level + 1);
    const bool is_first = level + 1 == levels_;
    for (auto* side : {&low_half_, &high_half_}) {
      const auto column = side == &low_half_ ? 0 : half;
      for (std::int64_t p = 0; p < rows / 2; ++p) {
        const bool was_joined = column == 0 && !is_first;
        std::copy_n(was_joined ? joined.row(p) : coefficients + p * columns_ + column, half, copies_.row(p));
        std::copy_n(coefficients + (rows / 2 + p) * columns_ + column, half, copies_.row(rows / 2 + p));
      }
      for (std::int64_t p = 0; p < rows / 2; ++p) {
        for (std::int64_t i = 0; i < taps() / 2; ++i) {
          const auto at = ((p - i) % (rows / 2) + rows / 2) % (rows / 2);
          neighbors_[static_cast<std::size_t>(2 * i)] = copies_.row(at);
          neighbors_[static_cast<std::size_t>(2 * i + 1)] = copies_.row(rows / 2 + at);
        }
        kernels_.combine_rows(neighbors_.data(), even_factors_.data(), odd_factors_.data(), static_cast<int>(taps()), even, odd,
                              half);
        std::copy_n(even, half, side->row(2 * p));
        std::copy_n(odd, half, side->row(2 * p + 1));
      }
    }
    for (std::int64_t r = 0; r < rows; ++r)
      join_row(low_half_.row(r), high_half_.row(r), half, level == 0 ? image + r * columns_ : joined.row(r));
  }
}

template class WaveletWalk<float>;
template class WaveletWalk<double>;

}  // namespace mpol::ops
