#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/ops/proximal/dual_images.h>
#include <mpol_cpp/ops/proximal/proximal_kernels.h>

/// How dual steps of total variation go through an image (ops/proximal/tv_dual.h, ops/proximal/cube_dual.h): row by row, each of
/// which stays in the first cache from the dual image read to the dual image written.
namespace mpol::ops {

/// Blocks of rows that workers take one after another, as few as give each as much: a walk begins and ends with a few rows of its
/// neighbors.
struct RowBlocks {
  /// @param images     of which each is cut in the same way
  /// @param most_rows  of a block
  RowBlocks(std::int64_t pixels, std::int64_t images, std::int64_t most_rows) : npix(pixels) {
    constexpr std::int64_t fewest_rows = 32;
    const auto threads = sharing_threads(), shared = std::lcm(images, threads);  // the fewest blocks that all share alike
    const auto of_image = std::max<std::int64_t>(shared / images, 1);
    rows = std::min(most_rows, std::max(fewest_rows, (npix + of_image - 1) / of_image));
    count = (npix + rows - 1) / rows;
  }

  std::int64_t first_row(std::int64_t block) const { return block % count * rows; }
  std::int64_t end_row(std::int64_t block) const { return std::min(npix, first_row(block) + rows); }

  std::int64_t npix, rows, count;  // count: of an image
};

/// The problems in the order in which workers take them, each with all of its passes: those with most work first. Empty where too
/// few have any, so that all workers do better to share each pass.
inline std::vector<std::size_t> most_work_first(const std::vector<std::int64_t>& passes) {
  constexpr std::int64_t fewest_of_worker = 2;
  const auto going = std::count_if(passes.begin(), passes.end(), [](std::int64_t own) { return own > 0; });
  if (going < fewest_of_worker * sharing_threads()) return {};
  std::vector<std::size_t> order(passes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return passes[a] > passes[b]; });
  return order;
}

/// What all walks of a map have in common.
template <typename T>
struct WalkFrame {
  WalkFrame(std::int64_t pixels, bool convolves)
      : npix(pixels),
        hann(convolves),
        distance(AlignedArray<T>::padded(pixels) + AlignedArray<T>::padded(2 * proximal_margin)),
        kernels(proximal_kernels<T>(selected_isa())),
        inside(distance),
        counted(distance),
        curved(distance) {
    std::fill_n(inside.data(), npix, T(1));
    std::fill_n(counted.data(), npix - 1, T(1));
    if (npix > 2) std::fill_n(curved.data() + 1, npix - 2, T(1));
  }

  std::int64_t npix;
  bool hann;              // whether the images are convolved with the Hann kernel before they are looked at: S
  std::int64_t distance;  // from row to row
  ProximalKernels<T> kernels;
  AlignedArray<T> inside, counted;  // a row of 1 up to the last pixel, or up to the one before it, then of 0
  AlignedArray<T> curved;           // a row of 1 but for the first and the last pixel
};

/// Rows in hand of one worker, with zeros around them.
template <typename T>
struct WalkScratch {
  static constexpr std::int64_t rows_of_v = 8, rows_of_others = 4;  // that are kept, powers of two

  /// @param planes  of duals besides those of differences to the next row and column: 3 with curvature
  explicit WalkScratch(std::int64_t row_distance, std::int64_t planes = 0)
      : distance(row_distance), memory((2 * rows_of_v + 3 * rows_of_others + 1 + planes * rows_of_v) * row_distance) {}

  T* row(std::int64_t i) const { return memory.data() + i * distance + proximal_margin; }
  DualRow<T> v(std::int64_t r) const {
    const auto i = 2 * (r & (rows_of_v - 1));
    return {row(i), row(i + 1)};
  }
  T* other(int which, std::int64_t r) const { return row(2 * rows_of_v + which * rows_of_others + (r & (rows_of_others - 1))); }
  T* slope(std::int64_t r) const { return other(0, r); }     // D^T v, with what other duals add
  T* primal(std::int64_t r) const { return other(1, r); }    // x
  T* smoothed(std::int64_t r) const { return other(2, r); }  // S x
  const T* zeros() const { return row(2 * rows_of_v + 3 * rows_of_others); }
  CurvatureRow<T> curvature(std::int64_t r) const {  // v of it
    const auto i = 2 * rows_of_v + 3 * rows_of_others + 1 + 3 * (r & (rows_of_v - 1));
    return {row(i), row(i + 1), row(i + 2)};
  }

  std::int64_t distance;
  AlignedArray<T> memory;
};

/// What other dual images than those of total variation add to the slope of an image: factors of their rows, which have the same
/// distance as those of the walk. None: the slope is D^T v.
template <typename T>
struct OtherSlopes {
  static constexpr int most = 3;
  std::array<DualTerm<T>, most> terms{};  // of row 0
  int count = 0;
  T variation_factor = 1;               // the factor of D^T v where others are added; 0: it is not looked at
  T curvature_factor = 0;               // likewise of E^T v, the dual of second order
  std::int64_t plane_of_curvature = 0;  // the first of three

  void add(const T* now, const T* before, T factor) { terms[static_cast<std::size_t>(count++)] = {now, before, factor}; }
};

/// A worker's way through some rows of an image.
template <typename T>
class DualWalk {
 public:
  DualWalk(const WalkFrame<T>& frame, const DualImages<T>& duals, const WalkScratch<T>& scratch, const T* q, const T* mask,
           std::int64_t image, T weight, PixelCut<T> cut, T momentum, std::int64_t first, const OtherSlopes<T>& others = {})
      : frame_(frame),
        duals_(duals),
        scratch_(scratch),
        n_(frame.npix),
        q_(q + image * n_ * n_),
        mask_(mask == nullptr ? nullptr : mask + image * n_ * n_),
        image_(image),
        order_(duals.order_of(image)),
        first_rows_{first_row(0), first_row(1), first_row(2)},
        weight_(weight),
        cut_(cut),
        momentum_(momentum),
        others_(others),
        reach_(frame.hann ? 1 : 0),
        behind_(others.curvature_factor != 0 ? 1 : 0),
        bent_(first - 2 * reach_ - 2 - behind_),
        looked_(first - 2 * reach_ - 2 - behind_),
        shrunk_(first - reach_ - 1 - behind_),
        smoothed_(first - 1 - behind_) {}

  /// x of a row, and of those before it.
  const T* primal(std::int64_t row) {
    while (shrunk_ < row) {
      ++shrunk_;
      look_to(shrunk_ + reach_);
      if (inside(shrunk_)) shrink(shrunk_);
    }
    return inside(row) ? scratch_.primal(row) : scratch_.zeros();
  }

  /// S x of a row, and of those before it.
  const T* smoothed(std::int64_t row) {
    if (!frame_.hann) return primal(row);
    while (smoothed_ < row) {
      ++smoothed_;
      const T* above = primal(smoothed_ + 1);
      const T* below = smoothed_ > 0 ? scratch_.primal(smoothed_ - 1) : scratch_.zeros();
      frame_.kernels.smooth({below, scratch_.primal(smoothed_), above}, frame_.inside.data(), scratch_.smoothed(smoothed_), n_);
    }
    return scratch_.smoothed(row);
  }

  /// The dual image of total variation raised at a row. @return what it says of turning (ProximalKernels::ascend)
  double raise(std::int64_t row, T step) {
    if (row + 1 >= n_) return 0;  // no differences are counted there
    const T* next = smoothed(row + 1);
    const T* center = frame_.hann ? scratch_.smoothed(row) : scratch_.primal(row);
    return frame_.kernels.ascend(center, next, step, scratch_.v(row), dual(0, row), frame_.counted.data(), dual(2, row), n_);
  }

  /// The dual image of second order raised at a row. @return as raise()
  double raise_curvature(std::int64_t row, T step) {
    if (row < 1 || row + 1 >= n_) return 0;
    const T* above = smoothed(row + 1);
    const auto at = [&](std::int64_t r) { return frame_.hann ? scratch_.smoothed(r) : scratch_.primal(r); };
    return frame_.kernels.ascend_curvature(at(row - 1), at(row), above, step, scratch_.curvature(row), curvature(order_[0], row),
                                           frame_.curved.data(), curvature(order_[2], row), n_);
  }

 private:
  bool inside(std::int64_t row) const { return row >= 0 && row < n_; }
  CurvatureRow<T> curvature(int which, std::int64_t row) const {
    const auto plane = others_.plane_of_curvature;
    return {duals_.row(which, plane, image_, row), duals_.row(which, plane + 1, image_, row),
            duals_.row(which, plane + 2, image_, row)};
  }
  DualRow<T> first_row(int which) const {
    return {duals_.row(order_[static_cast<std::size_t>(which)], 0, image_, 0),
            duals_.row(order_[static_cast<std::size_t>(which)], 1, image_, 0)};
  }
  /// The row of now (0), before (1) or next (2).
  DualRow<T> dual(std::size_t which, std::int64_t row) const {
    const auto offset = row * frame_.distance;
    return {first_rows_[which].rows + offset, first_rows_[which].columns + offset};
  }

  void look_to(std::int64_t row) {
    while (looked_ < row) {
      ++looked_;
      if (!inside(looked_)) continue;
      if (others_.variation_factor != 0) {
        const T* below = looked_ > 0 ? scratch_.v(looked_ - 1).rows : scratch_.zeros();
        frame_.kernels.look_ahead(dual(0, looked_), dual(1, looked_), momentum_, below, scratch_.v(looked_),
                                  scratch_.slope(looked_), n_);
      }
      if (others_.curvature_factor != 0) add_curvature(looked_);
      if (others_.count > 0) gather(looked_);
    }
  }

  void add_curvature(std::int64_t row) {
    while (bent_ < row + 1) {
      ++bent_;
      if (!inside(bent_)) continue;
      frame_.kernels.look_ahead_curvature(curvature(order_[0], bent_), curvature(order_[1], bent_), momentum_,
                                          scratch_.curvature(bent_), n_);
    }
    const auto v = [&](std::int64_t r) -> CurvatureRow<const T> {
      if (!inside(r)) return {scratch_.zeros(), scratch_.zeros(), scratch_.zeros()};
      return scratch_.curvature(r);
    };
    frame_.kernels.add_curvature(v(row - 1), v(row), v(row + 1), others_.curvature_factor, others_.variation_factor,
                                 scratch_.slope(row), n_);
  }

  void gather(std::int64_t row) {
    auto terms = others_.terms;
    for (auto& term : terms) {
      if (term.now == nullptr) continue;
      term.now += row * frame_.distance;
      term.before += row * frame_.distance;
    }
    // With a curvature the slope is already what it was with the variation's factor.
    frame_.kernels.gather(terms.data(), others_.count, momentum_, others_.curvature_factor != 0 ? T(1) : others_.variation_factor,
                          scratch_.slope(row), n_);
  }

  bool has_slope() const { return others_.variation_factor != 0 || others_.curvature_factor != 0 || others_.count > 0; }
  const T* slope(std::int64_t row) const { return inside(row) && has_slope() ? scratch_.slope(row) : scratch_.zeros(); }

  void shrink(std::int64_t row) {
    frame_.kernels.shrink(q_ + row * n_, {slope(row - 1), slope(row), slope(row + 1)}, weight_, frame_.hann, cut_,
                          mask_ == nullptr ? nullptr : mask_ + row * n_, frame_.inside.data(), scratch_.primal(row), n_);
  }

  const WalkFrame<T>& frame_;
  const DualImages<T>& duals_;
  const WalkScratch<T>& scratch_;
  std::int64_t n_;
  const T *q_, *mask_;
  std::int64_t image_;
  std::array<int, 3> order_;
  std::array<DualRow<T>, 3> first_rows_;  // of now, before and next
  T weight_;
  PixelCut<T> cut_;
  T momentum_;
  OtherSlopes<T> others_;
  std::int64_t reach_;                              // rows that S needs on either side
  std::int64_t behind_;                             // rows that differences need on the side of the row before
  std::int64_t bent_, looked_, shrunk_, smoothed_;  // the last rows that are there
};

}  // namespace mpol::ops
