#include <mpol_cpp/ops/proximal/gpu/gpu_pixel_sums.h>

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/proximal/gpu/pixel_sums_launch.h>

namespace mpol::ops {
namespace {

template <typename T>
Tensor sums_of(const Tensor& images, const LengthEpsilons& epsilons) {
  const auto problems = images.size(0), nchan = images.size(1), npix = images.size(-1);
  PixelSumsArrays<T> arrays{};
  arrays.cut = {npix * npix, static_cast<std::int32_t>(nchan), static_cast<std::int32_t>(problems)};
  arrays.npix = static_cast<std::int32_t>(npix);
  arrays.varies = epsilons.variation.has_value();
  arrays.curves = epsilons.curvature.has_value();
  arrays.variation_epsilon = epsilons.variation.value_or(0);
  arrays.curvature_epsilon = epsilons.curvature.value_or(0);
  arrays.images = device_array<const T>(images);
  const auto numbers = torch::TensorOptions(torch::kFloat64).device(images.device());
  const auto pieces = at::empty({pixel_quantities, arrays.cut.blocks()}, numbers);
  auto sums = at::empty({pixel_quantities, problems, nchan}, numbers);
  arrays.piece_sums = device_array<double>(pieces);
  arrays.sums = device_array<double>(sums);
  for (const auto kernel : {PixelSumsKernel::look, PixelSumsKernel::sum_up})
    run_kernel(kernel, arrays, images.device(), EmulatedOrder::ascending);
  return sums;
}

}  // namespace

Tensor gpu_pixel_sums(const Tensor& images, const LengthEpsilons& epsilons) {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(images.device());
  return images.scalar_type() == torch::kFloat64 ? sums_of<double>(images, epsilons) : sums_of<float>(images, epsilons);
}

}  // namespace mpol::ops
