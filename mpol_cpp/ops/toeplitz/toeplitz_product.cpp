#include <mpol_cpp/ops/toeplitz/toeplitz_product.h>

#include <algorithm>

#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty_like.h>

#include <mpol_cpp/ops/gpu/first_use.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_on_gpu.h>

namespace mpol::ops {

namespace {

constexpr std::int64_t toeplitz_pixel_bytes = 96, toeplitz_stack_bytes = std::int64_t{1} << 29;

/// @param images  (n, npix, npix), image i with kernel i % nchan
Tensor product_of_stack(const Tensor& images, const Tensor& kernel) {
  constexpr std::int64_t no_factor = 0;
  const auto npix = images.size(-1);
  auto planes = at::constant_pad_nd(images, {0, npix});
  planes = at::_fft_r2c(planes, {2}, no_factor, /*onesided=*/true);  // (n, npix, npix + 1): rows of the other half are empty
  planes = at::constant_pad_nd(planes.transpose(1, 2), {0, npix});   // columns, as the kernel has them
  planes = at::_fft_c2c(planes, {2}, no_factor, /*forward=*/true);
  planes.view({-1, kernel.size(0), npix + 1, 2 * npix}).mul_(kernel);
  planes = at::_fft_c2c(planes, {2}, no_factor, /*forward=*/false);
  planes = planes.narrow(2, 0, npix).transpose(1, 2).contiguous();
  return at::_fft_c2r(planes, {2}, no_factor, 2 * npix).narrow(2, 0, npix);
}

Tensor product_by_tensors(const Tensor& images, const Tensor& kernel) {
  const auto npix = images.size(-1);
  const auto flat = images.to(torch::kFloat64).reshape({-1, npix, npix});
  if (images.numel() * toeplitz_pixel_bytes <= toeplitz_stack_bytes) {
    return product_of_stack(flat, kernel).reshape(images.sizes()).to(images.scalar_type());
  }
  const auto product = at::empty_like(flat, at::MemoryFormat::Contiguous);
  for (std::int64_t i = 0; i < flat.size(0); ++i) {
    product.narrow(0, i, 1).copy_(product_of_stack(flat.narrow(0, i, 1), kernel.narrow(0, i % kernel.size(0), 1)));
  }
  return product.view(images.sizes()).to(images.scalar_type());
}

Tensor quadratic_by_tensors(const Tensor& images, const Tensor& kernel, const Tensor& linear, const Tensor& constant,
                            Tensor& gradient, Accumulate accumulate) {
  const auto x = images.to(torch::kFloat64);
  const auto product = product_by_tensors(x, kernel);
  const auto half_slope = linear + product;
  auto values = (x * half_slope).sum({-2, -1}) + constant;
  const auto slope = half_slope + product;
  if (accumulate == Accumulate::add) gradient.add_(slope);
  else gradient.copy_(slope);
  return values;
}

bool has_kernels(const Tensor& images) {
  return images.is_cuda() && ToeplitzOnGpu::has(images.size(-1), images.device()) &&
         trusted_on(images.device(), "the exact likelihood", toeplitz_kernels_agree);
}

}  // namespace

double toeplitz_bytes(std::int64_t npix, std::int64_t images) {
  const double pixels = static_cast<double>(npix * npix), count = static_cast<double>(images);
  constexpr std::int64_t shared_memory_of_any_gpu = 99 * std::int64_t{1024};
  if (ToeplitzOnGpu::fits(npix, shared_memory_of_any_gpu)) return 16 * pixels * std::clamp(0x1p29 / (16 * pixels), 1.0, count);
  return pixels * (40 * count + 96 * std::clamp(0x1p29 / (96 * pixels), 1.0, count));
}

Tensor toeplitz_product(const Tensor& images, const Tensor& kernel) {
  const torch::NoGradGuard no_grad;
  return has_kernels(images) ? ToeplitzOnGpu::product(images, kernel) : product_by_tensors(images, kernel);
}

Tensor toeplitz_quadratic(const Tensor& images, const Tensor& kernel, const Tensor& linear, const Tensor& constant,
                          Tensor& gradient, Accumulate accumulate) {
  const torch::NoGradGuard no_grad;
  if (gradient.is_contiguous() && has_kernels(images))
    return ToeplitzOnGpu::quadratic(images, kernel, linear, constant, gradient, accumulate);
  return quadratic_by_tensors(images, kernel, linear, constant, gradient, accumulate);
}

bool toeplitz_kernels_agree(torch::Device device) {
  const torch::NoGradGuard no_grad;
  const auto on_device = torch::TensorOptions(torch::kFloat64).device(device);
  const auto waves = [&](torch::IntArrayRef shape, double step) {
    return at::arange(c10::multiply_integers(shape), on_device).mul(step).sin().view(shape);
  };
  constexpr double bound = 1e-10;
  const auto differ = [&](const Tensor& own, const Tensor& reference) {
    return !((own - reference).abs().max() <= bound * reference.abs().max()).item<bool>();  // nor where either is no number
  };
  for (const std::int64_t npix : {60, 64}) {  // whose lines go through all radices but 2, which none of even npix does
    const auto images = waves({2, 2, npix, npix}, 0.61), kernel = waves({2, npix + 1, 2 * npix}, 0.23);
    const auto linear = waves({2, npix, npix}, 0.41), constant = waves({2}, 0.7);
    auto own = at::empty_like(images), reference = at::empty_like(images);
    const auto value = ToeplitzOnGpu::quadratic(images, kernel, linear, constant, own, Accumulate::overwrite);
    const auto expected = quadratic_by_tensors(images, kernel, linear, constant, reference, Accumulate::overwrite);
    if (differ(value, expected) || differ(own, reference)) return false;
  }
  return true;
}

}  // namespace mpol::ops
