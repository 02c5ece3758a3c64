#include <mpol_cpp/plot/image_panel.h>

#include <algorithm>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/axis_ticks.h>

namespace mpol::plot {

Tensor as_cube(const Tensor& sky_image, const GridCoords& coords) {
  const auto npix = coords.npix();
  const bool has_pixels = sky_image.defined() && (sky_image.dim() == 2 || sky_image.dim() == 3) && sky_image.numel() > 0 &&
                          sky_image.size(-1) == npix && sky_image.size(-2) == npix;
  if (!has_pixels)
    throw ShapeError(fmt::format("image of shape ({}) for a figure: expected (nchan, {}, {})",
                                 sky_image.defined() ? fmt::format("{}", fmt::join(sky_image.sizes(), ", ")) : "", npix, npix));
  return sky_image.detach().to(torch::kCPU, torch::kFloat64).reshape({-1, npix, npix});
}

ImagePanel panel_style(const Tensor& values, ColourScale scale) {
  const auto finite = at::where(at::isfinite(values), values, at::zeros_like(values));
  const double least = finite.min().item<double>(), largest = finite.max().item<double>();
  ImagePanel panel;
  panel.scale = scale;
  if (scale == ColourScale::sequential) {
    panel.lower = std::min(0.0, least);
    panel.upper = largest > panel.lower ? largest : panel.lower + 1;
  } else {
    const double reach = std::max(-least, largest);
    panel.upper = reach > 0 ? reach : 1;
    panel.lower = -panel.upper;
  }
  return panel;
}

ScaleBar default_scale_bar(const GridCoords& coords) {
  const double length = round_length(coords.cell_size() * static_cast<double>(coords.npix()) / 4);
  return {length, short_number(length) + "″"};
}

}  // namespace mpol::plot
