#include <mpol_cpp/models/start_image.h>

#include <ATen/ops/amax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

Tensor base_of_image(const Tensor& sky, double floor, const PixelMapping& mapping) {
  const auto image = sky.to(torch::kCPU, torch::kFloat64);
  if (mapping.sign == PixelSign::either) return mapping.inverse(image);
  const auto peak = at::amax(image, {-2, -1}, /*keepdim=*/true);  // (nchan, 1, 1)
  const double weakest = peak.min().item<double>();
  if (!(weakest > 0))
    throw DataError(fmt::format("start image: peak {}; every channel needs a positive pixel; start from base:-3", weakest));
  return mapping.inverse(at::maximum(image, floor * peak));
}

BaseCubeOptions start_at_image(BaseCubeOptions options, const Tensor& sky, double floor) {
  const auto dtype = options.dtype().value_or(torch::kFloat32);
  options.base_cube(base_of_image(sky, floor, options.pixel_mapping()).to(dtype));
  return options;
}

BaseCubeOptions start_at_intensity(BaseCubeOptions options, double intensity) {
  const auto even = at::full({}, intensity, torch::kFloat64);
  options.start(options.pixel_mapping().inverse(even).item<double>());
  return options;
}

}  // namespace mpol
