#include <mpol_cpp/images/gauss_conv_image.h>

#include <algorithm>
#include <cmath>

#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/real.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/gaussian_kernel.h>

namespace mpol {
namespace {

/// The next even number without prime factors above 5: transforms of such lengths are fast.
std::int64_t padded_length(std::int64_t at_least) {
  const auto smooth = [](std::int64_t n) {
    for (const std::int64_t factor : {2, 3, 5}) {
      while (n % factor == 0) n /= factor;
    }
    return n == 1;
  };
  auto n = at_least + at_least % 2;
  while (!smooth(n)) n += 2;
  return n;
}

}  // namespace

GaussConvImageImpl::GaussConvImageImpl(GridCoords coords, std::vector<Beam> beams, double truncation)
    : coords_(coords), beams_(std::move(beams)), truncation_(truncation) {
  check_beams(beams_, coords_);
  if (!std::isfinite(truncation_) || truncation_ <= 0) {
    throw ValueError(
        fmt::format("the kernel is cut at {} standard deviations; it must be finite and greater than 0", truncation_));
  }
  reset();
}

void GaussConvImageImpl::reset() {
  std::vector<Tensor> kernels;
  std::int64_t widest = 0;
  for (const auto& beam : beams_) {
    auto kernel = gaussian_kernel(beam, coords_.cell_size(), truncation_);
    const auto half = kernel.size(0) / 2, reach = std::min(half, coords_.npix() - 1);  // further away is no pixel
    kernels.push_back(kernel.narrow(0, half - reach, 2 * reach + 1).narrow(1, half - reach, 2 * reach + 1));
    widest = std::max(widest, reach);
  }
  padded_ = padded_length(coords_.npix() + widest);
  std::vector<Tensor> spectra;
  for (const auto& kernel : kernels) {
    auto plane = at::zeros({padded_, padded_}, torch::kFloat64);
    plane.narrow(0, 0, kernel.size(0)).narrow(1, 0, kernel.size(1)).copy_(kernel);
    const auto centered = at::roll(plane, {-(kernel.size(0) / 2), -(kernel.size(1) / 2)}, {0, 1});
    spectra.push_back(at::real(at::fft_rfft2(centered)).contiguous());
  }
  spectra_ = register_metadata("spectra", at::stack(spectra));
}

Tensor GaussConvImageImpl::forward(const Tensor& sky) const {
  check_beams_fit(static_cast<std::int64_t>(beams_.size()), sky, coords_);
  const auto spectrum = at::fft_rfft2(sky, {{padded_, padded_}}) * spectra_.to(sky.scalar_type());
  return at::fft_irfft2(spectrum, {{padded_, padded_}}).narrow(-2, 0, coords_.npix()).narrow(-1, 0, coords_.npix()).contiguous();
}

}  // namespace mpol
