#include <mpol_cpp/ops/proximal/tv_dual.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>

#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/ops/simd/flush_tiny.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t rows_of_v = 8, rows_of_others = 4;  // that are kept, powers of two

}  // namespace

/// Rows in hand with zeros around them.
template <typename T>
struct TvDual<T>::Scratch {
  explicit Scratch(std::int64_t row_distance)
      : distance(row_distance), memory((2 * rows_of_v + 3 * rows_of_others + 2) * row_distance) {}

  T* row(std::int64_t i) const { return memory.data() + i * distance + proximal_margin; }
  DualRow<T> v(std::int64_t r) const {
    const auto i = 2 * (r & (rows_of_v - 1));
    return {row(i), row(i + 1)};
  }
  T* other(int which, std::int64_t r) const { return row(2 * rows_of_v + which * rows_of_others + (r & (rows_of_others - 1))); }
  T* slope(std::int64_t r) const { return other(0, r); }     // D^T v
  T* primal(std::int64_t r) const { return other(1, r); }    // x
  T* smoothed(std::int64_t r) const { return other(2, r); }  // S x
  T* blended() const { return row(2 * rows_of_v + 3 * rows_of_others); }
  const T* zeros() const { return row(2 * rows_of_v + 3 * rows_of_others + 1); }

  std::int64_t distance;
  AlignedArray<T> memory;
};

template <typename T>
class TvDual<T>::Walk {
 public:
  Walk(const TvDual& owner, const Scratch& scratch, const T* q, const T* mask, std::int64_t image, T weight, T momentum,
       std::int64_t first)
      : owner_(owner),
        scratch_(scratch),
        n_(owner.npix_),
        q_(q + image * n_ * n_),
        mask_(mask == nullptr ? nullptr : mask + image * n_ * n_),
        image_(image),
        order_(owner.order_[static_cast<std::size_t>(image / owner.nchan_)]),
        weight_(weight),
        momentum_(momentum),
        reach_(owner.hann_ ? 1 : 0),
        looked_(first - 2 * reach_ - 2),
        shrunk_(first - reach_ - 1),
        smoothed_(first - 1) {}

  /// x of a row, and of those before it.
  const T* primal(std::int64_t row) {
    while (shrunk_ < row) {
      ++shrunk_;
      look_to(shrunk_ + reach_);
      if (inside(shrunk_)) shrink(shrunk_);
    }
    return inside(row) ? scratch_.primal(row) : scratch_.zeros();
  }

  /// The dual image of a row raised. @return what it says of turning (ProximalKernels::ascend)
  double raise(std::int64_t row, T step) {
    if (row + 1 >= n_) return 0;  // no differences are counted there
    const T* next = smoothed(row + 1);
    const T* center = owner_.hann_ ? scratch_.smoothed(row) : scratch_.primal(row);
    return owner_.kernels_.ascend(center, next, step, scratch_.v(row), dual(order_[0], row), owner_.counted_.data(),
                                  dual(order_[2], row), n_);
  }

 private:
  bool inside(std::int64_t row) const { return row >= 0 && row < n_; }
  DualRow<T> dual(int which, std::int64_t row) const { return owner_.dual_row(which, image_, row); }

  void look_to(std::int64_t row) {
    while (looked_ < row) {
      ++looked_;
      if (!inside(looked_)) continue;
      const T* below = looked_ > 0 ? scratch_.v(looked_ - 1).rows : scratch_.zeros();
      owner_.kernels_.look_ahead(dual(order_[0], looked_), dual(order_[1], looked_), momentum_, below, scratch_.v(looked_),
                                 scratch_.slope(looked_), n_);
    }
  }

  const T* slope(std::int64_t row) const { return inside(row) ? scratch_.slope(row) : scratch_.zeros(); }

  void shrink(std::int64_t row) {
    const T* slopes = slope(row);
    if (owner_.hann_) {
      owner_.kernels_.blend(slope(row - 1), slopes, slope(row + 1), scratch_.blended(), n_);
      slopes = scratch_.blended();
    }
    owner_.kernels_.shrink(q_ + row * n_, slopes, weight_, owner_.hann_, mask_ == nullptr ? nullptr : mask_ + row * n_,
                           owner_.inside_.data(), scratch_.primal(row), n_);
  }

  const T* smoothed(std::int64_t row) {
    if (!owner_.hann_) return primal(row);
    while (smoothed_ < row) {
      ++smoothed_;
      const T* above = primal(smoothed_ + 1);
      const T* below = smoothed_ > 0 ? scratch_.primal(smoothed_ - 1) : scratch_.zeros();
      owner_.kernels_.blend(below, scratch_.primal(smoothed_), above, scratch_.blended(), n_);
      owner_.kernels_.smooth(scratch_.blended(), owner_.inside_.data(), scratch_.smoothed(smoothed_), n_);
    }
    return scratch_.smoothed(row);
  }

  const TvDual& owner_;
  const Scratch& scratch_;
  std::int64_t n_;
  const T *q_, *mask_;
  std::int64_t image_;
  std::array<int, 3> order_;
  T weight_, momentum_;
  std::int64_t reach_;                       // rows that S needs on either side
  std::int64_t looked_, shrunk_, smoothed_;  // the last rows that are there
};

template <typename T>
TvDual<T>::TvDual(std::int64_t problems, std::int64_t nchan, std::int64_t npix, bool hann)
    : problems_(problems),
      nchan_(nchan),
      npix_(npix),
      hann_(hann),
      distance_(AlignedArray<T>::padded(npix) + AlignedArray<T>::padded(2 * proximal_margin)),
      rows_per_block_(npix < 512 ? 32 : 64),
      blocks_((npix + rows_per_block_ - 1) / rows_per_block_),
      kernels_(proximal_kernels<T>(selected_isa())),
      duals_(std::int64_t{3} * 2 * problems * nchan * npix * distance_),
      inside_(distance_),
      counted_(distance_),
      order_(static_cast<std::size_t>(problems), {0, 1, 2}) {
  std::fill_n(inside_.data(), npix, T(1));
  std::fill_n(counted_.data(), npix - 1, T(1));
}

template <typename T>
TvDual<T>::~TvDual() = default;

template <typename T>
DualRow<T> TvDual<T>::dual_row(int which, std::int64_t image, std::int64_t row) const {
  auto* rows = duals_.data() + ((which * 2 * images() + image) * npix_ + row) * distance_ + proximal_margin;
  return {rows, rows + images() * npix_ * distance_};
}

template <typename T>
void TvDual<T>::apply(const T* q, const T* mask, const std::vector<double>& weights, const std::vector<std::int64_t>& passes,
                      T* x) {
  while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) scratch_.emplace_back(distance_);
  const auto count = static_cast<std::size_t>(problems_);
  std::vector<double> t(count, 1.0), momentum(count, 0.0);
  std::vector<std::int64_t> going;  // blocks of images
  std::vector<double> turned(static_cast<std::size_t>(images() * blocks_));
  const auto first_row = [&](std::int64_t block) { return block % blocks_ * rows_per_block_; };
  const auto end_row = [&](std::int64_t block) { return std::min(npix_, first_row(block) + rows_per_block_); };
  const auto most = *std::max_element(passes.begin(), passes.end());
  for (std::int64_t pass = 0; pass < most; ++pass) {
    going.clear();
    for (std::int64_t block = 0; block < images() * blocks_; ++block) {
      const auto image = block / blocks_;
      const bool on = passes[static_cast<std::size_t>(image / nchan_)] > pass && weights[static_cast<std::size_t>(image)] > 0;
      if (on) going.push_back(block);
    }
    const auto raise = [&](std::int64_t i, std::int64_t worker) {
      const FlushTiny flush;
      const auto block = going[static_cast<std::size_t>(i)], image = block / blocks_;
      const double weight = weights[static_cast<std::size_t>(image)];
      Walk walk(*this, scratch_[static_cast<std::size_t>(worker)], q, mask, image, static_cast<T>(weight),
                static_cast<T>(momentum[static_cast<std::size_t>(image / nchan_)]), first_row(block));
      double sum = 0;
      for (auto row = first_row(block); row < end_row(block); ++row) sum += walk.raise(row, static_cast<T>(1 / (8 * weight)));
      turned[static_cast<std::size_t>(block)] = sum;
    };
    share_tasks(static_cast<std::int64_t>(going.size()), 1, raise, WorkerPool::Order::near);
    for (std::size_t problem = 0; problem < count; ++problem) {
      if (passes[problem] <= pass) continue;
      double sum = 0;
      const auto per_problem = static_cast<std::size_t>(nchan_ * blocks_);
      for (auto block = problem * per_problem; block < (problem + 1) * per_problem; ++block) sum += turned[block];
      const double next = sum > 0 ? 1 : (1 + std::sqrt(1 + 4 * t[problem] * t[problem])) / 2;
      momentum[problem] = sum > 0 ? 0 : (t[problem] - 1) / next;
      t[problem] = next;
      auto& order = order_[problem];  // now, before, next
      order = {order[2], order[0], order[1]};
    }
  }
  const auto finish = [&](std::int64_t block, std::int64_t worker) {
    const FlushTiny flush;
    const auto image = block / blocks_;
    Walk walk(*this, scratch_[static_cast<std::size_t>(worker)], q, mask, image,
              static_cast<T>(weights[static_cast<std::size_t>(image)]), 0, first_row(block));
    for (auto row = first_row(block); row < end_row(block); ++row) {
      std::copy_n(walk.primal(row), npix_, x + (image * npix_ + row) * npix_);
    }
  };
  share_tasks(images() * blocks_, 1, finish, WorkerPool::Order::near);
}

template <typename T>
Tensor TvDual<T>::dual() const {
  auto dual = at::empty({2, problems_, nchan_, npix_, npix_}, c10::CppTypeToScalarType<T>::value);
  auto* values = dual.template mutable_data_ptr<T>();
  for (std::int64_t image = 0; image < images(); ++image) {
    for (std::int64_t row = 0; row < npix_; ++row) {
      const auto own = dual_row(order_[static_cast<std::size_t>(image / nchan_)][0], image, row);
      std::copy_n(own.rows, npix_, values + (image * npix_ + row) * npix_);
      std::copy_n(own.columns, npix_, values + ((images() + image) * npix_ + row) * npix_);
    }
  }
  return dual;
}

template <typename T>
void TvDual<T>::set_dual(const Tensor& dual) {
  const auto own = dual.contiguous();
  const auto* values = own.template const_data_ptr<T>();
  for (std::int64_t image = 0; image < images(); ++image) {
    for (std::int64_t row = 0; row < npix_; ++row) {
      const auto to = dual_row(order_[static_cast<std::size_t>(image / nchan_)][0], image, row);
      std::copy_n(values + (image * npix_ + row) * npix_, npix_, to.rows);
      std::copy_n(values + ((images() + image) * npix_ + row) * npix_, npix_, to.columns);
    }
  }
}

template class TvDual<float>;
template class TvDual<double>;

}  // namespace mpol::ops
