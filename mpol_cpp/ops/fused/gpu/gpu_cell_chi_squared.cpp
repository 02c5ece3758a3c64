#include <mpol_cpp/ops/fused/gpu/gpu_cell_chi_squared.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_launch.h>
#include <mpol_cpp/ops/fft/real_fft.h>
#include <mpol_cpp/ops/gpu/first_use.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>

namespace mpol::ops {
namespace {

/// Images of all problems, for kernels that do not tell one problem from another.
GpuShape shape_of(std::int64_t npix, std::int64_t images) {
  return {static_cast<std::int32_t>(npix), static_cast<std::int32_t>(images), 1};
}

GpuRowCut cut_of(const GpuCells& cells, const GpuShape& shape, torch::Dtype dtype, torch::Device device) {
  const auto kind = GpuRowCut::kind_for(shape, dtype, device);
  if (!kind) throw ValueError(fmt::format("there are no kernels for rows of {} pixels on {}", shape.npix, device.str()));
  return {*kind, shape, dtype, device, cells, /*all=*/false};
}

}  // namespace

bool GpuCellChiSquared::agrees(torch::Dtype dtype, torch::Device device) {
  const torch::NoGradGuard no_grad;
  constexpr double area = 0.3;
  const double bound = dtype == torch::kFloat64 ? 1e-10 : 1e-4;
  const auto differ = [&](const Tensor& own, const Tensor& reference) {
    return !((own - reference).abs().max() <= bound * reference.abs().max()).item<bool>();  // nor where either is no number
  };
  for (const std::int64_t npix : {60, 64}) {  // whose lines go through radices 8, 5, 4 and 3
    const auto cells = at::arange(0, 2 * npix * (npix / 2 + 1), 3);
    const auto number = cells.to(torch::kFloat64);
    const auto data = at::complex((number * 0.61).sin(), (number * 0.41).sin()), weights = (number * 0.75).cos() + 1.5;
    const auto images = at::arange(4 * npix * npix, torch::kFloat64).mul(0.23).sin().view({2, 2, npix, npix}).to(device, dtype);
    auto gradient = at::empty_like(images);
    const auto value = GpuCellChiSquared(cells, data, weights, 2, npix, area, dtype, device).run(images, gradient);
    const auto half_plane = half_plane_fft(images.to(torch::kFloat64));
    const auto places = cells.to(device), weight = weights.to(device);
    const auto difference = half_plane.flatten(-3).index_select(-1, places) * area - data.to(device);
    auto spectrum = at::zeros_like(half_plane);
    spectrum.flatten(-3).index_add_(-1, places, difference * weight * (2 * area));
    const auto of_problems = (difference.abs().square() * weight).sum(-1);
    if (differ(value.sum(1), of_problems) || differ(gradient, half_plane_adjoint(spectrum))) return false;
  }
  return true;
}

bool GpuCellChiSquared::has(std::int64_t npix, torch::Dtype dtype, torch::Device device) {
  return npix >= 2 && npix % 2 == 0 && npix <= GpuShape::largest_npix &&
         GpuRowCut::kind_for(shape_of(npix, 1), dtype, device).has_value() &&
         (device.is_cpu() || trusted_on(device, fmt::format("chi^2 of cells in {}", c10::toString(dtype)),
                                        [dtype](torch::Device where) { return agrees(dtype, where); }));
}

GpuCellChiSquared::GpuCellChiSquared(const Tensor& cells, const Tensor& data, const Tensor& weights, std::int64_t nchan,
                                     std::int64_t npix, double cell_area, torch::Dtype dtype, torch::Device device,
                                     EmulatedOrder order)
    : order_(order),
      cell_area_(cell_area),
      cut_(cut_of(gpu_cells(cells, data, weights, nchan, npix, dtype), shape_of(npix, nchan), dtype, device)),
      scale_(at::ones({1}, torch::TensorOptions(torch::kFloat64).device(device))),
      lambda_(at::zeros({regularizer_count, 1}, scale_.options())) {}

Tensor GpuCellChiSquared::run(const Tensor& images, const Tensor& gradient) const {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(images.device());
  const auto problems = images.size(0), nchan = images.size(1);
  const auto shape = shape_of(images.size(2), problems * nchan);
  const auto cut = cut_.for_images(shape);
  const auto sums = at::empty({half_plane_sums, problems, nchan, cut.pieces().of_plane}, scale_.options());
  if (images.scalar_type() == torch::kFloat64) launch<double>(images, gradient, shape, cut, sums);
  else launch<float>(images, gradient, shape, cut, sums);
  return sums.select(0, 0).sum(2) + cut.cells().channel_constants;
}

template <typename T>
void GpuCellChiSquared::launch(const Tensor& images, const Tensor& gradient, const GpuShape& shape, const GpuRowCut& cut,
                               const Tensor& sums) const {
  const auto& cells = cut.cells();
  const auto pieces = cut.pieces();
  const auto spectrum =
      at::empty({shape.images(), cut.columns(), shape.npix}, images.options().dtype(c10::toComplexType(images.scalar_type())));
  GpuArrays<T> arrays{};
  arrays.shape = shape;
  arrays.constants.cell_area = cell_area_;
  arrays.constants.settings = RegularizerSettings::usual();
  arrays.image = device_array<T>(images);
  arrays.likelihood = device_array<T>(gradient);
  arrays.spectrum = device_array<ComplexValue<T>>(spectrum);
  set_cells(arrays, cells);
  arrays.scale = device_array<const double>(scale_);
  arrays.lambda = device_array<const double>(lambda_);
  arrays.plane_pieces = static_cast<std::int32_t>(pieces.of_plane);
  arrays.image_pieces = static_cast<std::int32_t>(pieces.of_image);
  arrays.plane_sums = device_array<double>(sums);
  arrays.kept = cut.kept<T>();
  for (const auto kernel : {GpuKernel::transform, GpuKernel::weigh, GpuKernel::gradient})
    run_kernel(TiledKernel{kernel, cut.kind()}, arrays, images.device(), order_);
}

}  // namespace mpol::ops
