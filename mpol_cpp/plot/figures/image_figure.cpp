#include <mpol_cpp/plot/figures/image_figure.h>

#include <algorithm>
#include <cmath>

#include <ATen/ops/where.h>

#include <torch/types.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/axis_ticks.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

std::string channel_title(const ImageFigureOptions& options, std::int64_t channel, std::int64_t nchan) {
  if (nchan == 1) return options.title;
  auto title = fmt::format("channel {}", channel);
  if (options.frequencies.size() == static_cast<std::size_t>(nchan))
    title += fmt::format(", {:.6g} GHz", options.frequencies[static_cast<std::size_t>(channel)] / 1e9);
  return title;
}

std::vector<std::int64_t> channels_of(const ImageFigureOptions& options, std::int64_t nchan) {
  if (options.channels.empty()) return shown_channels(nchan, options.max_channels);
  for (const auto channel : options.channels) {
    if (channel < 0 || channel >= nchan)
      throw ValueError(fmt::format("channel {} of a figure: the image has {}, from 0 on", channel, nchan));
  }
  return options.channels;
}

/// Columns of a page of so many panels: wider than high.
std::int64_t columns_for(std::int64_t panels) {
  return static_cast<std::int64_t>(std::ceil(std::sqrt(1.3 * static_cast<double>(panels)) - 0.2));
}

}  // namespace

std::vector<std::int64_t> shown_channels(std::int64_t nchan, std::int64_t max_channels) {
  if (max_channels < 1) throw ValueError(fmt::format("figure of {} channels: at least 1", max_channels));
  if (max_channels == 1) return {nchan / 2};
  const auto shown = std::min(nchan, max_channels);
  std::vector<std::int64_t> channels;
  for (std::int64_t i = 0; i < shown; ++i) channels.push_back(shown == 1 ? 0 : (i * (nchan - 1) + (shown - 1) / 2) / (shown - 1));
  return channels;
}

Page image_page(const Tensor& sky_image, const GridCoords& coords, const ImageFigureOptions& options) {
  const auto cube = as_cube(sky_image, coords);
  const auto nchan = options.nchan.value_or(cube.size(0));
  const auto channels = channels_of(options, nchan);
  const auto shown = options.nchan ? cube : cube.index_select(0, torch::tensor(channels));
  if (shown.size(0) != static_cast<std::int64_t>(channels.size()))
    throw ShapeError(fmt::format("figure of {} channels with pixels of {}", channels.size(), shown.size(0)));
  if (!options.beams.empty() && options.beams.size() != static_cast<std::size_t>(nchan))
    throw ShapeError(fmt::format("figure of {} channels with {} beams: give one per channel", nchan, options.beams.size()));
  auto style = panel_style(shown, options.scale.value_or(options.lower ? ColorScale::sequential : suitable_scale(shown)));
  style.norm = options.norm;
  if (options.upper && style.scale == ColorScale::diverging) style.lower = -*options.upper;
  if (options.lower) style.lower = *options.lower;
  if (options.upper) style.upper = *options.upper;
  style.unit = options.unit;
  style.beam = options.beam;
  const double width = coords.cell_size() * static_cast<double>(coords.npix());
  style.scale_bar = options.scale_bar.value_or(scale_bar_for(std::min(width, 2 * options.half_width.value_or(width))));

  Page page;
  const auto panels = static_cast<std::int64_t>(channels.size());
  page.columns = columns_for(panels);
  if (nchan > 1) {
    page.title = options.title;
    if (panels < nchan) page.title += fmt::format("{}{} of {} channels", page.title.empty() ? "" : ", ", panels, nchan);
  }
  if (panels == 1) page.panel_width = 900, page.panel_height = 760;
  else page.panel_width = 560, page.panel_height = 470;
  for (const auto channel : channels) {
    auto panel = style;
    panel.values = shown[static_cast<std::int64_t>(page.panels.size())];
    panel.extent = coords.img_ext();
    if (!options.beams.empty()) panel.beam = options.beams[static_cast<std::size_t>(channel)];
    panel.title = channel_title(options, channel, nchan);
    if (options.half_width) crop(panel, *options.half_width);
    shift(panel, options.center);
    // All maps share one scale: the last of each row shows it.
    const auto place = static_cast<std::int64_t>(page.panels.size()) + 1;
    panel.color_bar = place == panels || place % page.columns == 0;
    page.panels.emplace_back(std::move(panel));
  }
  return page;
}

}  // namespace mpol::plot
