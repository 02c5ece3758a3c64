#include <mpol_cpp/sparse_coding/circular_convolution.h>

#include <numbers>

#include <ATen/ops/arange.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

CircularConvolution::CircularConvolution(const Tensor& kernel, std::int64_t rows, std::int64_t columns)
    : rows_(rows), columns_(columns) {
  if (kernel.dim() < 2 || kernel.size(-2) > rows || kernel.size(-1) > columns) {
    throw ShapeError(fmt::format("a kernel {} is no image of at most {} x {}: cut it", kernel.sizes().vec(), rows, columns));
  }
  spectrum_ = at::fft_rfft2(kernel, at::IntArrayRef{rows, columns});
}

Tensor CircularConvolution::apply(const Tensor& x) const {
  return at::fft_irfft2(at::fft_rfft2(x) * spectrum_, at::IntArrayRef{rows_, columns_});
}

Tensor CircularConvolution::adjoint(const Tensor& y) const {
  return at::fft_irfft2(at::fft_rfft2(y) * spectrum_.conj(), at::IntArrayRef{rows_, columns_});
}

Tensor squared_differences(std::int64_t rows, std::int64_t columns, const torch::TensorOptions& options) {
  const auto along = [&](std::int64_t count, std::int64_t length) {
    const auto angle = at::arange(count, options.dtype(torch::kFloat64)) * (std::numbers::pi / static_cast<double>(length));
    return (angle.sin().square() * 4).to(options);
  };
  return along(rows, rows).unsqueeze(-1) + along(columns / 2 + 1, columns);
}

}  // namespace mpol
