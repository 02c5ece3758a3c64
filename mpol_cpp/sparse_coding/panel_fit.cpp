#include <mpol_cpp/sparse_coding/panel_fit.h>

#include <algorithm>
#include <array>
#include <numeric>

#include <ATen/Parallel.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <mpol_cpp/ops/fft/line_transforms.h>
#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol {

template <typename T>
class PanelFit::Passes {
 public:
  Passes(const Tensor& filters, std::int64_t npix)
      : npix_(npix),
        filters_(filters.size(0)),
        lines_(npix),
        line_distance_(ops::AlignedArray<T>::padded(npix) + ops::AlignedArray<T>::line),
        columns_(static_cast<std::size_t>(npix / 2 + 1)),
        panels_(Lines::panels(npix / 2 + 1)),
        distance_((npix + 8) * Lines::row_size),
        spectra_(filters_ * panels_ * distance_),
        work_(filters_ * panels_ * distance_),
        image_(panels_ * distance_),
        power_(panels_ * npix * batch) {
    std::iota(columns_.begin(), columns_.end(), 0);
    const auto whole = at::constant_pad_nd(filters, {0, npix - filters.size(-1), 0, npix - filters.size(-2)}).contiguous();
    rows_to_panels(whole.const_data_ptr<T>(), filters_, spectra_.data());
    std::fill_n(power_.data(), panels_ * npix_ * batch, T(0));
    ops::share_tasks(panels_, 1, [&](std::int64_t p, std::int64_t worker) {
      for (std::int64_t m = 0; m < filters_; ++m) {
        T* panel = spectra_.data() + (m * panels_ + p) * distance_;
        lines_.forward_panel(panel, transform_scratch(worker));
        for (std::int64_t k = 0; k < npix_; ++k) {
          const T *re = panel + k * Lines::row_size, *im = re + batch;
          T* power = power_.data() + (p * npix_ + k) * batch;
          for (std::int64_t b = 0; b < batch; ++b) power[b] += re[b] * re[b] + im[b] * im[b];
        }
      }
    });
  }

  /// @param product  null, or where D x goes
  void fit(const T* v, const T* image, T delta, T* x, T* product) {
    rows_to_panels(v, filters_, work_.data());
    rows_to_panels(image, 1, image_.data());
    if (product != nullptr && product_.size() == 0) product_ = ops::AlignedArray<T>(panels_ * distance_);
    ops::share_tasks(panels_, 1, [&](std::int64_t p, std::int64_t worker) {
      fit_panel(p, delta, product == nullptr ? nullptr : product_.data() + p * distance_, worker);
    });
    panels_to_rows(work_.data(), filters_, x);
    if (product != nullptr) panels_to_rows(product_.data(), 1, product);
  }

  void apply(const T* x, T* image) {
    rows_to_panels(x, filters_, work_.data());
    ops::share_tasks(panels_, 1, [&](std::int64_t p, std::int64_t worker) {
      T* sum = image_.data() + p * distance_;
      std::fill_n(sum, npix_ * Lines::row_size, T(0));
      for (std::int64_t m = 0; m < filters_; ++m) {
        T* w = work_.data() + (m * panels_ + p) * distance_;
        const T* d = spectra_.data() + (m * panels_ + p) * distance_;
        lines_.forward_panel(w, transform_scratch(worker));
        add_products<1>(d, w, sum);
      }
      scale(sum, p);
      lines_.inverse_panel(sum, transform_scratch(worker));
    });
    panels_to_rows(image_.data(), 1, image);
  }

  void adjoint(const T* image, T* x) {
    rows_to_panels(image, 1, image_.data());
    ops::share_tasks(panels_, 1, [&](std::int64_t p, std::int64_t worker) {
      T* own = image_.data() + p * distance_;
      lines_.forward_panel(own, transform_scratch(worker));
      scale(own, p);
      for (std::int64_t m = 0; m < filters_; ++m) {
        T* w = work_.data() + (m * panels_ + p) * distance_;
        const T* d = spectra_.data() + (m * panels_ + p) * distance_;
        for (std::int64_t k = 0; k < npix_ * Lines::row_size; k += Lines::row_size) {
          for (std::int64_t b = k; b < k + batch; ++b) {
            w[b] = d[b] * own[b] + d[b + batch] * own[b + batch];
            w[b + batch] = d[b] * own[b + batch] - d[b + batch] * own[b];
          }
        }
        lines_.inverse_panel(w, transform_scratch(worker));
      }
    });
    panels_to_rows(work_.data(), filters_, x);
  }

 private:
  using Lines = ops::LineTransforms<T>;
  static constexpr std::int64_t batch = Lines::batch;

  void make_scratch() {
    while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) {
      scratch_.emplace_back(lines_.scratch_size());
      line_scratch_.emplace_back(batch * line_distance_);
    }
  }
  T* transform_scratch(std::int64_t worker) { return scratch_[static_cast<std::size_t>(worker)].data(); }
  std::int64_t blocks() const { return (npix_ + batch - 1) / batch; }
  ops::FftPanels<T> from_row(T* panels, std::int64_t row) const {
    return {columns_.data(), npix_ / 2 + 1, panels + row * Lines::row_size, distance_};
  }

  void rows_to_panels(const T* images, std::int64_t count, T* panels) {
    make_scratch();
    ops::share_tasks(
        count * blocks(), 1,
        [&](std::int64_t task, std::int64_t worker) {
          const auto image = task / blocks(), row = task % blocks() * batch, rows = std::min(batch, npix_ - row);
          T* lines = line_scratch_[static_cast<std::size_t>(worker)].data();
          for (std::int64_t r = 0; r < rows; ++r)
            std::copy_n(images + (image * npix_ + row + r) * npix_, npix_, lines + r * line_distance_);
          lines_.forward_rows(lines, line_distance_, rows, lines_.everything(),
                              from_row(panels + image * panels_ * distance_, row), transform_scratch(worker));
        },
        WorkerPool::Order::near);
  }

  void panels_to_rows(T* panels, std::int64_t count, T* images) {
    ops::share_tasks(
        count * blocks(), 1,
        [&](std::int64_t task, std::int64_t worker) {
          const auto image = task / blocks(), row = task % blocks() * batch, rows = std::min(batch, npix_ - row);
          T* lines = line_scratch_[static_cast<std::size_t>(worker)].data();
          lines_.adjoint_rows(from_row(panels + image * panels_ * distance_, row), lines, line_distance_, rows,
                              lines_.everything(), transform_scratch(worker));
          for (std::int64_t r = 0; r < rows; ++r)
            std::copy_n(lines + r * line_distance_, npix_, images + (image * npix_ + row + r) * npix_);
        },
        WorkerPool::Order::near);
  }

  /// Adds sign d w to the sum, complex panels all three.
  template <int sign>
  void add_products(const T* d, const T* w, T* sum) const {
    for (std::int64_t k = 0; k < npix_ * Lines::row_size; k += Lines::row_size) {
      for (std::int64_t b = k; b < k + batch; ++b) {
        sum[b] += T(sign) * (d[b] * w[b] - d[b + batch] * w[b + batch]);
        sum[b + batch] += T(sign) * (d[b] * w[b + batch] + d[b + batch] * w[b]);
      }
    }
  }

  /// Columns of the half plane but the first and the last stand for two of the plane; transforms are unnormalized.
  std::array<T, static_cast<std::size_t>(batch)> column_scales(std::int64_t p) const {
    std::array<T, static_cast<std::size_t>(batch)> scales{};
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto column = p * batch + b;
      scales[static_cast<std::size_t>(b)] =
          static_cast<T>(column == 0 || column == npix_ / 2 ? 1 : 2) / static_cast<T>(npix_ * npix_);
    }
    return scales;
  }

  void scale(T* panel, std::int64_t p) const {
    const auto scales = column_scales(p);
    for (std::int64_t k = 0; k < npix_ * Lines::row_size; k += batch) {
      for (std::int64_t b = 0; b < batch; ++b) panel[k + b] *= scales[static_cast<std::size_t>(b)];
    }
  }

  /// w + conj(d) r with r = (s - sum d w) / (sum |d|^2 + delta), and the inverse transform of its columns. D of it is s - delta
  /// r.
  void fit_panel(std::int64_t p, T delta, T* product, std::int64_t worker) {
    T* left = image_.data() + p * distance_;
    lines_.forward_panel(left, transform_scratch(worker));
    if (product != nullptr) std::copy_n(left, npix_ * Lines::row_size, product);
    for (std::int64_t m = 0; m < filters_; ++m) {
      T* w = work_.data() + (m * panels_ + p) * distance_;
      const T* d = spectra_.data() + (m * panels_ + p) * distance_;
      lines_.forward_panel(w, transform_scratch(worker));
      add_products<-1>(d, w, left);
    }
    for (std::int64_t k = 0; k < npix_; ++k) {
      const T* power = power_.data() + (p * npix_ + k) * batch;
      T* row = left + k * Lines::row_size;
      for (std::int64_t b = 0; b < batch; ++b) {
        const T gain = 1 / (power[b] + delta);
        row[b] *= gain;
        row[b + batch] *= gain;
      }
    }
    const auto scales = column_scales(p);
    for (std::int64_t m = 0; m < filters_; ++m) {
      T* w = work_.data() + (m * panels_ + p) * distance_;
      const T* d = spectra_.data() + (m * panels_ + p) * distance_;
      for (std::int64_t k = 0; k < npix_ * Lines::row_size; k += Lines::row_size) {
        for (std::int64_t b = 0; b < batch; ++b) {
          const auto re = k + b, im = re + batch;
          const T scale = scales[static_cast<std::size_t>(b)];
          w[re] = (w[re] + d[re] * left[re] + d[im] * left[im]) * scale;
          w[im] = (w[im] + d[re] * left[im] - d[im] * left[re]) * scale;
        }
      }
      lines_.inverse_panel(w, transform_scratch(worker));
    }
    if (product == nullptr) return;
    for (std::int64_t k = 0; k < npix_ * Lines::row_size; ++k) product[k] -= delta * left[k];
    scale(product, p);
    lines_.inverse_panel(product, transform_scratch(worker));
  }

  std::int64_t npix_, filters_;
  Lines lines_;
  std::int64_t line_distance_;
  std::vector<std::int32_t> columns_;
  std::int64_t panels_, distance_;                            // of each filter; elements from one to the next
  ops::AlignedArray<T> spectra_, work_, image_;               // panels of filters, coefficients and the image
  ops::AlignedArray<T> power_;                                // (panels, npix, batch)
  ops::AlignedArray<T> product_;                              // like image_, once asked for
  std::vector<ops::AlignedArray<T>> scratch_, line_scratch_;  // of each worker
};

PanelFit::PanelFit(const Tensor& filters, std::int64_t npix) : filters_(filters.size(0)) {
  if (filters.scalar_type() == torch::kFloat32) single_ = std::make_unique<Passes<float>>(filters, npix);
  else double_ = std::make_unique<Passes<double>>(filters, npix);
}

PanelFit::~PanelFit() = default;

bool PanelFit::suits(const Tensor& filters, std::int64_t rows, std::int64_t columns) {
  const auto dtype = filters.scalar_type();
  return filters.is_cpu() && filters.dim() == 3 && rows == columns && rows % 2 == 0 &&
         (dtype == torch::kFloat32 || dtype == torch::kFloat64);
}

template <typename Function>
void PanelFit::run(const Function& function) {
  if (single_) function(*single_, 0.0F);
  else function(*double_, 0.0);
}

Tensor PanelFit::fit(const Tensor& v, const Tensor& images, const std::vector<double>& deltas, Tensor* product) {
  const auto from = v.contiguous(), own_images = images.contiguous();
  auto x = at::empty_like(from);
  if (product != nullptr) *product = at::empty_like(own_images);
  const auto plane = images.size(-1) * images.size(-1), filters = v.size(-3);
  run([&](auto& passes, auto type) {
    using T = decltype(type);
    const auto* of_v = from.const_data_ptr<T>();
    const auto* of_images = own_images.const_data_ptr<T>();
    auto* to = x.mutable_data_ptr<T>();
    for (std::size_t i = 0; i < deltas.size(); ++i) {
      const auto k = static_cast<std::int64_t>(i);
      passes.fit(of_v + k * filters * plane, of_images + k * plane, static_cast<T>(deltas[i]), to + k * filters * plane,
                 product == nullptr ? nullptr : product->mutable_data_ptr<T>() + k * plane);
    }
  });
  return x;
}

Tensor PanelFit::apply(const Tensor& x) {
  const auto from = x.contiguous();
  auto images = at::empty_like(from.select(-3, 0), at::MemoryFormat::Contiguous);
  const auto plane = x.size(-1) * x.size(-1), filters = x.size(-3);
  run([&](auto& passes, auto type) {
    using T = decltype(type);
    for (std::int64_t k = 0; k < images.numel() / plane; ++k) {
      passes.apply(from.const_data_ptr<T>() + k * filters * plane, images.mutable_data_ptr<T>() + k * plane);
    }
  });
  return images;
}

Tensor PanelFit::adjoint(const Tensor& images) {
  const auto from = images.contiguous();
  auto shape = images.sizes().vec();
  shape.insert(shape.end() - 2, filters_);
  auto x = at::empty(shape, images.options());
  const auto plane = images.size(-1) * images.size(-1);
  run([&](auto& passes, auto type) {
    using T = decltype(type);
    for (std::int64_t k = 0; k < images.numel() / plane; ++k) {
      passes.adjoint(from.const_data_ptr<T>() + k * plane, x.mutable_data_ptr<T>() + k * filters_ * plane);
    }
  });
  return x;
}

}  // namespace mpol
