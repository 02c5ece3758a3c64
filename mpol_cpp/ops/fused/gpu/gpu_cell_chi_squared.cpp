#include <mpol_cpp/ops/fused/gpu/gpu_cell_chi_squared.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_launch.h>
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

bool GpuCellChiSquared::has(std::int64_t npix, torch::Dtype dtype, torch::Device device) {
  return npix >= 2 && npix % 2 == 0 && npix <= GpuShape::largest_npix &&
         GpuRowCut::kind_for(shape_of(npix, 1), dtype, device).has_value();
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
  const auto sums = at::empty({half_plane_sums, problems, nchan * cut.pieces().of_plane}, scale_.options());
  if (images.scalar_type() == torch::kFloat64) launch<double>(images, gradient, shape, cut, sums);
  else launch<float>(images, gradient, shape, cut, sums);
  return sums.select(0, 0).sum(1) + cut.cells().constant;
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
  arrays.cell_images = static_cast<std::int32_t>(cells.cell_of.size(0));
  arrays.cell_of = device_array<const std::int32_t>(cells.cell_of);
  arrays.weight = device_array<const T>(cells.weight);
  arrays.real = device_array<const T>(cells.real);
  arrays.imag = device_array<const T>(cells.imag);
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
