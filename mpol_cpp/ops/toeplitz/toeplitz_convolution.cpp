#include <mpol_cpp/ops/toeplitz/toeplitz_convolution.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include <mpol_cpp/ops/fft/padded_rows.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_kernels.h>

namespace mpol::ops {
template <typename T>
class ToeplitzConvolution<T>::Passes {
 public:
  explicit Passes(std::int64_t npix)
      : npix_(npix),
        kernels_(toeplitz_kernels<T>(selected_isa())),
        rows_(npix, {npix, 0}),
        sums_(static_cast<std::size_t>(npix)) {}

  /// load(row, pixels) gives the npix pixels of a row, store(row, pixels) takes those of the product.
  template <typename Load, typename Store>
  void run(const T* kernel, const Load& load, const Store& store) {
    while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) scratch_.push_back(rows_.scratch());
    const auto kept = npix_ + 1, count = LineTransforms<T>::panels(kept);
    if (panels_.size() == 0) panels_ = AlignedArray<T>(count * rows_.panel_distance());
    rows_.to_panels(kept, load, panels_.data(), scratch_);
    share_tasks(
        count, 1,
        [&](std::int64_t p, std::int64_t worker) {
          const auto& scratch = scratch_[static_cast<std::size_t>(worker)];
          const auto& transforms = rows_.transforms();
          const auto first = p * batch;
          T* panel = scratch.panel.data();
          T* values = panels_.data() + p * rows_.panel_distance();
          transforms.forward_part(values, rows_.support(), panel, scratch.transform.data());
          // Columns of the half plane but the first and the last stand for two of the plane.
          T stands_for[batch];
          for (std::int64_t i = 0; i < batch; ++i) stands_for[i] = first + i == 0 || first + i == npix_ ? T(1) : T(2);
          kernels_.multiply_panel(panel, transforms.slots().data(), 2 * npix_, kernel + first * 2 * npix_,
                                  std::min(batch, kept - first), stands_for);
          transforms.inverse_part(panel, values, rows_.support(), scratch.transform.data());
        },
        WorkerPool::Order::near);
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
          kernels_.quadratic_row(product, x + at, anchor != nullptr ? anchor + at : nullptr, linear + at, gradient + at, npix_);
    };
    run(kernel, load, store);
    Sums total;
    for (const auto& sums : sums_) total += sums;
    return total;
  }

  void apply(const T* kernel, const T* x, T* y) {
    const std::lock_guard lock(mutex_);
    run(
        kernel, [&](std::int64_t row, T* line) { std::copy_n(x + row * npix_, npix_, line); },
        [&](std::int64_t row, const T* product) { std::copy_n(product, npix_, y + row * npix_); });
  }

 private:
  static constexpr std::int64_t batch = PaddedRows<T>::batch;

  std::int64_t npix_;
  ToeplitzKernels<T> kernels_;
  PaddedRows<T> rows_;
  std::mutex mutex_;  // for all below
  std::vector<typename PaddedRows<T>::Scratch> scratch_;
  AlignedArray<T> panels_;
  std::vector<Sums> sums_;
};

template <typename T>
ToeplitzConvolution<T>::ToeplitzConvolution(std::int64_t npix) : passes_(std::make_unique<Passes>(npix)) {}

template <typename T>
ToeplitzConvolution<T>::~ToeplitzConvolution() = default;

template <typename T>
typename ToeplitzConvolution<T>::Sums ToeplitzConvolution<T>::quadratic(const T* kernel, const T* x, const T* anchor,
                                                                        const T* linear, T* gradient) const {
  return passes_->quadratic(kernel, x, anchor, linear, gradient);
}

template <typename T>
void ToeplitzConvolution<T>::apply(const T* kernel, const T* x, T* y) const {
  passes_->apply(kernel, x, y);
}

template class ToeplitzConvolution<float>;
template class ToeplitzConvolution<double>;

}  // namespace mpol::ops
