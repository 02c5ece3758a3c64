#include <mpol_cpp/uncertainty/image_growth.h>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/images/gauss_conv_image.h>

namespace mpol {

Tensor ImageGrowth::of_channel(std::int64_t channel, const Tensor& sky, const GridCoords& coords) const {
  const auto own = sky.detach().to(torch::kCPU, torch::kFloat64);
  if (!share.defined()) return at::zeros_like(own);
  return share[channel].item<double>() * smoothed_to(own.unsqueeze(0), coords, width[channel].item<double>())[0];
}

std::vector<double> growth_widths(const GridCoords& coords) {
  constexpr double fewest_pixels = 4;
  std::vector<double> widths{0};
  auto pixels = static_cast<double>(coords.npix()) / 3;
  while (pixels >= fewest_pixels) {
    widths.push_back(pixels * coords.cell_size());
    pixels /= 2;
  }
  return widths;
}

Tensor smoothed_to(const Tensor& sky, const GridCoords& coords, double width) {
  if (width == 0) return sky;
  constexpr double truncation = 4;  // standard deviations
  auto convolution = GaussConvImage(coords, std::vector<Beam>{{width, width, 0}}, truncation);
  convolution->to(sky.device());
  auto smoothed = at::empty_like(sky, at::MemoryFormat::Contiguous);
  const auto planes = sky.reshape({-1, 1, sky.size(-2), sky.size(-1)});
  auto results = smoothed.view(planes.sizes());
  for (std::int64_t i = 0; i < planes.size(0); ++i) results[i].copy_(convolution->forward(planes[i]));
  return smoothed;
}

}  // namespace mpol
