#include <mpol_cpp/fourier/slab_operator.h>

#include <numeric>
#include <utility>

#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::int64_t no_factor = 0;

/// Transforms each row, filled up to twice its length; the half that is not redundant. @param rows  (nchan, rows, npix)
Tensor transform_rows(const Tensor& rows) {
  const auto npix = rows.size(2);
  if (rows.numel() == 0) return at::empty({rows.size(0), rows.size(1), npix + 1}, rows.options().dtype(torch::kComplexDouble));
  return at::_fft_r2c(at::constant_pad_nd(rows, {0, npix}), {2}, no_factor, /*onesided=*/true);
}

/// Its inverse without factor; the first half of each row. @param planes  (nchan, rows, npix + 1)
Tensor transform_rows_back(const Tensor& planes) {
  const auto npix = planes.size(2) - 1;
  if (planes.numel() == 0) return at::empty({planes.size(0), planes.size(1), npix}, planes.options().dtype(torch::kFloat64));
  return at::_fft_c2r(planes, {2}, no_factor, 2 * npix).narrow(2, 0, npix);
}

/// Multiplies by the kernel between transforms along columns. @param columns  (nchan, npix, own columns)
Tensor convolve_columns(const Tensor& columns, const Tensor& kernel) {
  if (columns.numel() == 0) return columns;
  const auto npix = columns.size(1);
  auto planes = at::constant_pad_nd(columns.transpose(1, 2), {0, npix});
  planes = at::_fft_c2c(planes, {2}, no_factor, /*forward=*/true);
  planes.mul_(kernel);
  planes = at::_fft_c2c(planes, {2}, no_factor, /*forward=*/false);
  return planes.narrow(2, 0, npix).transpose(1, 2);
}

}  // namespace

SlabOperator::SlabOperator(const NormalOperator& whole, std::shared_ptr<Communicator> ranks)
    : coords_(whole.coords()),
      slabs_(coords_.npix(), std::move(ranks)),
      nchan_(whole.nchan()),
      nvis_(whole.nvis()),
      occupied_cells_(whole.occupied_cells()),
      dirty_(slabs_.slab_of(whole.dirty()).clone()),
      constant_(slabs_.ranks().is_first() ? whole.constant().clone() : at::zeros_like(whole.constant())) {
  const auto columns = share_of(whole.kernel().size(1), slabs_.ranks().rank(), slabs_.ranks().size());
  kernel_ = whole.kernel().narrow(1, columns.begin, columns.size()).clone();
}

Tensor SlabOperator::apply(const Tensor& slab) const {
  const torch::NoGradGuard no_gradient;
  if (slab.sizes() != dirty_.sizes() || slab.scalar_type() != torch::kFloat64)
    throw ShapeError(fmt::format("a slab of shape {}, {}: it must be {}, Double", slab.sizes().vec(),
                                 c10::toString(slab.scalar_type()), dirty_.sizes().vec()));
  const auto columns = convolve_columns(slabs_.to_columns(transform_rows(slab)), kernel_);
  return transform_rows_back(slabs_.to_rows(columns));
}

double SlabOperator::value_and_gradient(const Tensor& slab, Tensor& gradient) const {
  const auto values = channel_values_and_gradient(slab, gradient);
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> SlabOperator::channel_values_and_gradient(const Tensor& slab, Tensor& gradient) const {
  const torch::NoGradGuard no_gradient;
  const auto product = apply(slab);
  gradient.copy_((product - dirty_) * 2);
  const auto values = ((slab * (product - dirty_ * 2)).sum({1, 2}) + constant_).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

}  // namespace mpol
