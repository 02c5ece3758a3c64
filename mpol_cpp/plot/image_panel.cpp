#include <mpol_cpp/plot/image_panel.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/axis_ticks.h>
#include <mpol_cpp/plot/panel_geometry.h>

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

namespace {

Tensor finite_or_zero(const Tensor& values) { return at::where(at::isfinite(values), values, at::zeros_like(values)); }

}  // namespace

ColorScale suitable_scale(const Tensor& values) {
  const auto finite = finite_or_zero(values);
  const bool both = finite.min().item<double>() < -0.5 * finite.max().item<double>();
  return both ? ColorScale::diverging : ColorScale::sequential;
}

ImagePanel panel_style(const Tensor& values) { return panel_style(values, suitable_scale(values)); }

ImagePanel panel_style(const Tensor& values, ColorScale scale) {
  const auto finite = finite_or_zero(values);
  const double least = finite.min().item<double>(), largest = finite.max().item<double>();
  ImagePanel panel;
  panel.scale = scale;
  if (scale == ColorScale::sequential) {
    panel.lower = std::min(0.0, least);
    panel.upper = largest > panel.lower ? largest : panel.lower + 1;
  } else {
    const double reach = std::max(-least, largest);
    panel.upper = reach > 0 ? reach : 1;
    panel.lower = -panel.upper;
  }
  return panel;
}

void crop(ImagePanel& panel, double half_width) {
  const auto pixels = pixels_of(panel);
  // First and number of the pixels along an axis whose middles lie within the half width.
  const auto kept = [half_width](double from, double to, std::int64_t count) {
    const double step = (to - from) / static_cast<double>(count);
    std::int64_t first = count, last = -1;
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::abs(from + (static_cast<double>(i) + 0.5) * step) > half_width * (1 + 1e-9)) continue;
      first = std::min(first, i);
      last = i;
    }
    if (last < first) throw ValueError(fmt::format("a figure of {} arcsec to each side holds no pixel: show more", half_width));
    return std::pair{first, last - first + 1};
  };
  const auto [east, west, south, north] = panel.extent;
  const auto rows = pixels.size(0), columns = pixels.size(1);
  const auto [left, width] = kept(east, west, columns);
  const auto [bottom, height] = kept(south, north, rows);
  const double dx = (west - east) / static_cast<double>(columns), dy = (north - south) / static_cast<double>(rows);
  panel.values = pixels.narrow(0, bottom, height).narrow(1, left, width);
  panel.extent = {east + static_cast<double>(left) * dx, east + static_cast<double>(left + width) * dx,
                  south + static_cast<double>(bottom) * dy, south + static_cast<double>(bottom + height) * dy};
}

void shift(ImagePanel& panel, const SkyOffset& center) {
  panel.extent[0] += center.east;
  panel.extent[1] += center.east;
  panel.extent[2] += center.north;
  panel.extent[3] += center.north;
}

void shift(Page& page, const SkyOffset& center) {
  for (auto& panel : page.panels) {
    auto* image = std::get_if<ImagePanel>(&panel);
    if (image != nullptr && image->x_label == ImagePanel().x_label) shift(*image, center);
  }
}

std::vector<double> to_vector(const Tensor& values) {
  const auto flat = values.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

ScaleBar default_scale_bar(const GridCoords& coords) {
  return scale_bar_for(coords.cell_size() * static_cast<double>(coords.npix()));
}

ScaleBar scale_bar_for(double width) {
  const double length = round_length(width / 4);
  return {length, short_number(length) + "″"};
}

}  // namespace mpol::plot
