#include <mpol_cpp/ops/nufft_convolution.h>

#include <mutex>
#include <vector>

#include <mpol_cpp/ops/nufft_rows.h>

namespace mpol::ops {
namespace {

template <typename T>
void multiply_column(const T* __restrict kernel, T* __restrict column, std::int64_t length) {
  for (std::int64_t i = 0; i < length; ++i) {
    column[2 * i] *= kernel[i];
    column[2 * i + 1] *= kernel[i];
  }
}

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
  using Complex = std::complex<T>;

  explicit Passes(std::int64_t npix) : npix_(npix), rows_(npix), sums_(static_cast<std::size_t>(npix)) {}

  /// load(row, pixels) gives the npix pixels of a row, store(row, pixels) takes those of the product.
  template <typename Load, typename Store>
  void run(const T* kernel, const Load& load, const Store& store) {
    while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) scratch_.push_back(rows_.scratch());
    const auto kept = npix_ + 1, distance = rows_.column_distance();
    if (columns_.size() == 0) columns_ = AlignedArray<Complex>(kept * distance);
    const auto load_line = [&](std::int64_t row, T* line) {
      load(row, line);
      std::fill_n(line + npix_, npix_, T(0));
    };
    rows_.to_columns(kept, load_line, columns_.data(), scratch_);
    share_tasks(kept, 4, [&](std::int64_t j, std::int64_t worker) {
      Complex* column = scratch_[static_cast<std::size_t>(worker)].column.data();
      Complex* values = columns_.data() + j * distance;
      std::copy_n(values, npix_, column);
      std::fill_n(column + npix_, npix_, Complex(0));
      rows_.transforms().forward_column(column);
      multiply_column(kernel + j * 2 * npix_, reinterpret_cast<T*>(column), 2 * npix_);
      rows_.transforms().inverse_column(column);
      std::copy_n(column, npix_, values);
    });
    rows_.from_columns(kept, columns_.data(), store, scratch_);
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
  std::int64_t npix_;
  PaddedRows<T> rows_;
  std::mutex mutex_;  // for all below
  std::vector<typename PaddedRows<T>::Scratch> scratch_;
  AlignedArray<Complex> columns_;
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
