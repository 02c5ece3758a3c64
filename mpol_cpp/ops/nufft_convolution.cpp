#include <mpol_cpp/ops/nufft_convolution.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include <mpol_cpp/ops/nufft_rows.h>

namespace mpol::ops {
namespace {

/// Sums of one row, in lanes that each add in a fixed order.
template <typename T>
typename NufftConvolution<T>::Sums quadratic_row(const T* __restrict product, const T* __restrict x, const T* __restrict anchor,
                                                 const T* __restrict linear, T* __restrict gradient, std::int64_t n) {
  constexpr std::int64_t lane_count = 8;
  double value[lane_count] = {}, square[lane_count] = {}, change[lane_count] = {};
  const auto add = [&](std::int64_t i, std::int64_t lane) {
    const T difference = anchor != nullptr ? x[i] - anchor[i] : x[i];
    const T twice = 2 * product[i], slope = linear[i] + twice;
    gradient[i] = slope;
    value[lane] += static_cast<double>(difference) * (static_cast<double>(linear[i]) + static_cast<double>(product[i]));
    square[lane] += static_cast<double>(slope) * static_cast<double>(slope);
    change[lane] += static_cast<double>(twice) * static_cast<double>(twice);
  };
  std::int64_t i = 0;
  for (; i + lane_count <= n; i += lane_count) {
    for (std::int64_t lane = 0; lane < lane_count; ++lane) add(i + lane, lane);
  }
  for (; i < n; ++i) add(i, 0);
  typename NufftConvolution<T>::Sums sums;
  for (std::int64_t lane = 0; lane < lane_count; ++lane) {
    sums.value += value[lane];
    sums.gradient += square[lane];
    sums.change += change[lane];
  }
  return sums;
}

}  // namespace

template <typename T>
class NufftConvolution<T>::Passes {
 public:
  explicit Passes(std::int64_t npix) : npix_(npix), rows_(npix), sums_(static_cast<std::size_t>(npix)) {}

  /// load(row, pixels) gives the npix pixels of a row, store(row, pixels) takes those of the product.
  template <typename Load, typename Store>
  void run(const T* kernel, const Load& load, const Store& store) {
    while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) scratch_.push_back(rows_.scratch());
    const auto kept = npix_ + 1, count = LineTransforms<T>::panels(kept), size = npix_ * row_size;
    if (panels_.size() == 0) panels_ = AlignedArray<T>(count * rows_.panel_distance());
    const auto load_line = [&](std::int64_t row, T* line) {
      load(row, line);
      std::fill_n(line + npix_, npix_, T(0));
    };
    rows_.to_panels(kept, load_line, panels_.data(), scratch_);
    share_tasks(count, 1, [&](std::int64_t p, std::int64_t worker) {
      const auto& scratch = scratch_[static_cast<std::size_t>(worker)];
      const auto& transforms = rows_.transforms();
      const auto first = p * batch;
      T* panel = scratch.panel.data();
      T* values = panels_.data() + p * rows_.panel_distance();
      std::copy_n(values, size, panel);
      std::fill_n(panel + size, size, T(0));
      transforms.forward_panel(panel, scratch.transform.data());
      transforms.kernels().multiply_panel(panel, transforms.slots().data(), 2 * npix_, kernel + first * 2 * npix_, 2 * npix_,
                                          std::min(batch, kept - first));
      transforms.inverse_panel(panel, scratch.transform.data());
      copy_to_half_plane(panel, first, values);
    });
    rows_.from_panels(kept, panels_.data(), store, scratch_);
  }

  Sums quadratic(const T* kernel, const T* x, const T* anchor, const T* linear, T* gradient) {
    const std::lock_guard lock(mutex_);
    const auto load = [&](std::int64_t row, T* line) {
      const T* pixels = x + row * npix_;
      if (anchor == nullptr) {
        std::copy_n(pixels, npix_, line);
        return;
      }
      const T* zero = anchor + row * npix_;
      for (std::int64_t i = 0; i < npix_; ++i) line[i] = pixels[i] - zero[i];
    };
    const auto store = [&](std::int64_t row, const T* product) {
      const auto at = row * npix_;
      sums_[static_cast<std::size_t>(row)] =
          quadratic_row(product, x + at, anchor != nullptr ? anchor + at : nullptr, linear + at, gradient + at, npix_);
    };
    run(kernel, load, store);
    Sums total;
    for (const auto& sums : sums_) {
      total.value += sums.value;
      total.gradient += sums.gradient;
      total.change += sums.change;
    }
    return total;
  }

  void apply(const T* kernel, const T* x, T* y) {
    const std::lock_guard lock(mutex_);
    run(
        kernel, [&](std::int64_t row, T* line) { std::copy_n(x + row * npix_, npix_, line); },
        [&](std::int64_t row, const T* product) { std::copy_n(product, npix_, y + row * npix_); });
  }

 private:
  static constexpr std::int64_t batch = PaddedRows<T>::batch, row_size = PaddedRows<T>::row_size;

  /// Columns of the half plane but the first and the last stand for two of the plane.
  void copy_to_half_plane(const T* panel, std::int64_t first, T* values) const {
    T stands_for[row_size];
    std::fill_n(stands_for, row_size, T(2));
    for (const auto column : {std::int64_t{0}, npix_}) {
      const auto lane = column - first;
      if (lane >= 0 && lane < batch) stands_for[lane] = stands_for[lane + batch] = T(1);
    }
    for (std::int64_t r = 0; r < npix_; ++r) {
      for (std::int64_t i = 0; i < row_size; ++i) values[r * row_size + i] = stands_for[i] * panel[r * row_size + i];
    }
  }

  std::int64_t npix_;
  PaddedRows<T> rows_;
  std::mutex mutex_;  // for all below
  std::vector<typename PaddedRows<T>::Scratch> scratch_;
  AlignedArray<T> panels_;
  std::vector<Sums> sums_;
};

template <typename T>
NufftConvolution<T>::NufftConvolution(std::int64_t npix) : passes_(std::make_unique<Passes>(npix)) {}

template <typename T>
NufftConvolution<T>::~NufftConvolution() = default;

template <typename T>
typename NufftConvolution<T>::Sums NufftConvolution<T>::quadratic(const T* kernel, const T* x, const T* anchor, const T* linear,
                                                                  T* gradient) const {
  return passes_->quadratic(kernel, x, anchor, linear, gradient);
}

template <typename T>
void NufftConvolution<T>::apply(const T* kernel, const T* x, T* y) const {
  passes_->apply(kernel, x, y);
}

template class NufftConvolution<float>;
template class NufftConvolution<double>;

}  // namespace mpol::ops
