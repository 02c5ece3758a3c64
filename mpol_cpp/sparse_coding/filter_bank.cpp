#include <mpol_cpp/sparse_coding/filter_bank.h>

#include <algorithm>
#include <complex>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/linalg_solve.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol {
namespace {

/// w += conj(d) gain (s - sum d w), row by row, so that what the sum reads is in the cache when it is changed.
/// @param w     (images, filters, rows, columns)
/// @param d     (filters, rows, columns)
/// @param s     (images, rows, columns)
/// @param gain  (images or 1, rows, columns)
template <typename T>
void fit_rows(std::complex<T>* w, const std::complex<T>* d, const std::complex<T>* s, const T* gain, std::int64_t images,
              std::int64_t filters, std::int64_t rows, std::int64_t columns, std::int64_t gains) {
  const auto plane = rows * columns;
  ops::share_tasks(images * rows, 1, [&](std::int64_t task, std::int64_t) {
    const auto image = task / rows, row = task % rows;
    std::vector<T> left(static_cast<std::size_t>(2 * columns));  // real, imaginary: separate pairs would not be vectors
    const auto* of_s = reinterpret_cast<const T*>(s + image * plane + row * columns);
    const auto* of_gain = gain + (gains == 1 ? 0 : image) * plane + row * columns;
    std::copy(of_s, of_s + 2 * columns, left.begin());
    for (std::int64_t m = 0; m < filters; ++m) {
      const auto* dm = reinterpret_cast<const T*>(d + m * plane + row * columns);
      const auto* wm = reinterpret_cast<const T*>(w + (image * filters + m) * plane + row * columns);
      auto* sum = left.data();
      for (std::int64_t k = 0; k < columns; ++k) {
        sum[2 * k] -= dm[2 * k] * wm[2 * k] - dm[2 * k + 1] * wm[2 * k + 1];
        sum[2 * k + 1] -= dm[2 * k] * wm[2 * k + 1] + dm[2 * k + 1] * wm[2 * k];
      }
    }
    for (std::int64_t k = 0; k < columns; ++k) {
      left[static_cast<std::size_t>(2 * k)] *= of_gain[k];
      left[static_cast<std::size_t>(2 * k + 1)] *= of_gain[k];
    }
    for (std::int64_t m = 0; m < filters; ++m) {
      const auto* dm = reinterpret_cast<const T*>(d + m * plane + row * columns);
      auto* wm = reinterpret_cast<T*>(w + (image * filters + m) * plane + row * columns);
      const auto* sum = left.data();
      for (std::int64_t k = 0; k < columns; ++k) {
        wm[2 * k] += dm[2 * k] * sum[2 * k] + dm[2 * k + 1] * sum[2 * k + 1];
        wm[2 * k + 1] += dm[2 * k] * sum[2 * k + 1] - dm[2 * k + 1] * sum[2 * k];
      }
    }
  });
}

}  // namespace

FilterBank::FilterBank(const Tensor& filters, std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {
  if ((filters.dim() != 3 && filters.dim() != 4) || filters.size(-2) > rows || filters.size(-1) > columns) {
    throw ShapeError(
        fmt::format("filters {} do not suit images of {} x {}: give (filters, h, w) or (filters, channels, h, w), no larger",
                    filters.sizes().vec(), rows, columns));
  }
  const auto by_channel = filters.dim() == 4 ? filters.transpose(0, 1) : filters.unsqueeze(0);
  spectra_ = at::fft_rfft2(by_channel, at::IntArrayRef{rows, columns}).contiguous();
  if (channels() == 1) {
    power_ = spectra_[0].abs().square().sum(0);
  } else {
    const auto atoms = spectra_.permute({2, 3, 0, 1});  // (rows, columns, C, M)
    power_ = atoms.matmul(atoms.mH());
  }
}

Tensor FilterBank::images_of(const Tensor& half_planes) const { return (half_planes * spectra_).sum(-3); }

Tensor FilterBank::gathered(const Tensor& half_planes) const {
  const auto all = half_planes.unsqueeze(-3) * spectra_.conj();  // (…, C, M, rows, columns)
  return channels() == 1 ? all : all.sum(-4, /*keepdim=*/true);
}

Tensor FilterBank::apply(const Tensor& x) const {
  return at::fft_irfft2(images_of(at::fft_rfft2(x)), at::IntArrayRef{rows_, columns_});
}

Tensor FilterBank::adjoint(const Tensor& image) const {
  return at::fft_irfft2(gathered(at::fft_rfft2(image)), at::IntArrayRef{rows_, columns_});
}

void FilterBank::fit(Tensor& w, const Tensor& s, const Tensor& delta) const {
  if (channels() > 1) {
    // (…, 1, rows, columns) to matrices beside each frequency.
    const auto diagonal = delta.expand_as(s).movedim(-3, -1).to(s.scalar_type()).diag_embed();
    const auto left = (s - images_of(w)).movedim(-3, -1).unsqueeze(-1);  // (…, rows, columns, C, 1)
    w.add_(gathered(at::linalg_solve(power_ + diagonal, left).squeeze(-1).movedim(-1, -3)));
    return;
  }
  const auto gain = (power_ + delta).reciprocal();
  if (!w.is_cpu()) {
    w.add_(gathered((s - images_of(w)) * gain));
    return;
  }
  const auto plane = rows_ * (columns_ / 2 + 1);
  const bool is_one = gain.numel() == plane;
  const auto gains = is_one ? gain.contiguous() : gain.expand_as(s).contiguous();
  const auto images = s.contiguous();
  AT_DISPATCH_FLOATING_TYPES(gain.scalar_type(), "fit", [&] {
    using Complex = std::complex<scalar_t>;
    fit_rows<scalar_t>(reinterpret_cast<Complex*>(w.mutable_data_ptr()),
                       reinterpret_cast<const Complex*>(spectra_.const_data_ptr()),
                       reinterpret_cast<const Complex*>(images.const_data_ptr()), gains.const_data_ptr<scalar_t>(),
                       s.numel() / plane, filters_count(), rows_, columns_ / 2 + 1, is_one ? 1 : s.numel() / plane);
  });
}

}  // namespace mpol
