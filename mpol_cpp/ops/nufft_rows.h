#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <mpol_cpp/ops/fft.h>
#include <mpol_cpp/ops/fused_memory.h>
#include <mpol_cpp/ops/nufft_workers.h>

namespace mpol::ops {

/// Real transforms of an image on a plane of twice its size, half by half: rows to the first columns of the half plane
/// and back. The caller transforms the columns, so that the empty half of them and columns that nobody wants cost nothing.
template <typename T>
class PaddedRows {
 public:
  using Complex = std::complex<T>;

  explicit PaddedRows(std::int64_t npix)
      : npix_(npix),
        real_distance_(AlignedArray<T>::padded(2 * npix) + AlignedArray<T>::line),
        half_distance_(AlignedArray<Complex>::padded(npix + 1) + AlignedArray<Complex>::line),
        transforms_(plan_line_transforms<T>({2 * npix, real_distance_, half_distance_})) {}

  /// What one worker needs.
  struct Scratch {
    AlignedArray<T> lines;
    AlignedArray<Complex> halves, column;  // the column: 2 npix
  };
  Scratch scratch() const {
    return {AlignedArray<T>(batch * real_distance_), AlignedArray<Complex>(batch * half_distance_),
            AlignedArray<Complex>(2 * npix_ + 8)};
  }

  const LineTransforms<T>& transforms() const { return *transforms_; }
  std::int64_t npix() const { return npix_; }
  /// Complex elements from one column of npix values to the next.
  std::int64_t column_distance() const { return npix_ + 8; }

  /// The first `kept` columns of all rows' transforms; load(row, line) fills a line of 2 npix.
  template <typename Load>
  void to_columns(std::int64_t kept, const Load& load, Complex* columns, const std::vector<Scratch>& scratch) const {
    share_tasks((npix_ + batch - 1) / batch, 1, [&](std::int64_t block, std::int64_t worker) {
      const auto& own = scratch[static_cast<std::size_t>(worker)];
      const auto first = block * batch, count = std::min(batch, npix_ - first);
      for (std::int64_t r = 0; r < count; ++r) load(first + r, own.lines.data() + r * real_distance_);
      transforms_->forward_rows(own.lines.data(), own.halves.data(), count);
      for (std::int64_t j = 0; j < kept; ++j) {
        const auto* from = own.halves.data() + j;
        auto* to = columns + j * column_distance() + first;
        if (count == batch) {
          for (std::int64_t r = 0; r < batch; ++r) to[r] = from[r * half_distance_];
        } else {
          for (std::int64_t r = 0; r < count; ++r) to[r] = from[r * half_distance_];
        }
      }
    });
  }

  /// Back: the real parts of sum_j over the whole plane, whose other columns are 0, given to store(row, line, worker).
  template <typename Store>
  void from_columns(std::int64_t kept, const Complex* columns, const Store& store, const std::vector<Scratch>& scratch) const {
    share_tasks((npix_ + batch - 1) / batch, 1, [&](std::int64_t block, std::int64_t worker) {
      const auto& own = scratch[static_cast<std::size_t>(worker)];
      const auto first = block * batch, count = std::min(batch, npix_ - first);
      for (std::int64_t j = 0; j < kept; ++j) {
        const auto* from = columns + j * column_distance() + first;
        auto* to = own.halves.data() + j;
        if (count == batch) {
          for (std::int64_t r = 0; r < batch; ++r) to[r * half_distance_] = from[r];
        } else {
          for (std::int64_t r = 0; r < count; ++r) to[r * half_distance_] = from[r];
        }
      }
      for (std::int64_t r = 0; r < count; ++r) {
        auto* half = own.halves.data() + r * half_distance_;
        std::fill(half + kept, half + npix_ + 1, Complex(0));
        half[0].imag(0);
        half[npix_].imag(0);
      }
      transforms_->inverse_rows(own.halves.data(), own.lines.data(), count);
      for (std::int64_t r = 0; r < count; ++r) store(first + r, own.lines.data() + r * real_distance_);
    });
  }

 private:
  static constexpr std::int64_t batch = LineTransforms<T>::batch;

  std::int64_t npix_, real_distance_, half_distance_;
  std::unique_ptr<LineTransforms<T>> transforms_;
};

}  // namespace mpol::ops
