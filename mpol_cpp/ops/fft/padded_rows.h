#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <mpol_cpp/ops/fft/line_transforms.h>
#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {

/// Real transforms of an image on a plane of twice its size, half by half: rows to panels of the first columns of the half
/// plane and back. The caller transforms the columns, so that the empty half of them and columns that nobody wants cost
/// nothing.
template <typename T>
class PaddedRows {
 public:
  static constexpr std::int64_t batch = LineTransforms<T>::batch, row_size = LineTransforms<T>::row_size;

  /// @param support  of a line of 2 npix: where its npix pixels are
  PaddedRows(std::int64_t npix, const FftSupport& support)
      : npix_(npix),
        support_(support),
        line_distance_(AlignedArray<T>::padded(2 * npix) + AlignedArray<T>::line),
        transforms_(2 * npix),
        columns_(static_cast<std::size_t>(npix + 1)) {
    std::iota(columns_.begin(), columns_.end(), 0);
  }

  /// What one worker needs.
  struct Scratch {
    AlignedArray<T> lines, transform;
    AlignedArray<T> panel;  // of 2 npix rows
  };
  Scratch scratch() const {
    return {AlignedArray<T>(batch * line_distance_), AlignedArray<T>(transforms_.scratch_size()),
            AlignedArray<T>(2 * npix_ * row_size)};
  }

  const LineTransforms<T>& transforms() const { return transforms_; }
  std::int64_t npix() const { return npix_; }
  /// Elements from one panel of npix rows to the next.
  std::int64_t panel_distance() const { return (npix_ + 8) * row_size; }

  const FftSupport& support() const { return support_; }

  /// The first `kept` columns of all rows' transforms; load(row, line) fills the support of a line.
  template <typename Load>
  void to_panels(std::int64_t kept, const Load& load, T* panels, const std::vector<Scratch>& scratch) const {
    share_tasks((npix_ + batch - 1) / batch, 1,
                [&](std::int64_t block, std::int64_t worker) {
                  const auto& own = scratch[static_cast<std::size_t>(worker)];
                  const auto first = block * batch, count = std::min(batch, npix_ - first);
                  for (std::int64_t r = 0; r < count; ++r) load(first + r, own.lines.data() + r * line_distance_);
                  transforms_.forward_rows(own.lines.data(), line_distance_, count, support_, from_row(kept, first, panels),
                                           own.transform.data());
                },
                WorkerPool::Order::near);
  }

  /// The adjoint: Re sum_j H_j e^{2 pi i j x / (2 npix)} over the kept columns, of which store(row, line) is
  /// given the support.
  template <typename Store>
  void from_panels(std::int64_t kept, T* panels, const Store& store, const std::vector<Scratch>& scratch) const {
    share_tasks((npix_ + batch - 1) / batch, 1,
                [&](std::int64_t block, std::int64_t worker) {
                  const auto& own = scratch[static_cast<std::size_t>(worker)];
                  const auto first = block * batch, count = std::min(batch, npix_ - first);
                  transforms_.adjoint_rows(from_row(kept, first, panels), own.lines.data(), line_distance_, count, support_,
                                           own.transform.data());
                  for (std::int64_t r = 0; r < count; ++r) store(first + r, own.lines.data() + r * line_distance_);
                },
                WorkerPool::Order::near);
  }

 private:
  FftPanels<T> from_row(std::int64_t kept, std::int64_t row, T* panels) const {
    return {columns_.data(), kept, panels + row * row_size, panel_distance()};
  }

  std::int64_t npix_;
  FftSupport support_;
  std::int64_t line_distance_;
  LineTransforms<T> transforms_;
  std::vector<std::int32_t> columns_;
};

}  // namespace mpol::ops
