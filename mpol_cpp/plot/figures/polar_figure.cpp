#include <mpol_cpp/plot/figures/polar_figure.h>

#include <algorithm>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

constexpr std::int64_t most_maps = 6;

std::string map_title(const PolarFigureOptions& options, std::int64_t channel, std::int64_t nchan) {
  if (nchan == 1) return options.title;
  auto title = fmt::format("channel {}", channel);
  if (options.frequencies.size() == static_cast<std::size_t>(nchan))
    title += fmt::format(", {:.6g} GHz", options.frequencies[static_cast<std::size_t>(channel)] / 1e9);
  return title;
}

}  // namespace

Page polar_page(const Tensor& map, const PolarFigureOptions& options) {
  if (map.dim() != 3 || map.numel() == 0) {
    throw ShapeError(fmt::format("map of shape ({}) for a figure: expected (nchan, nr, nphi)", fmt::join(map.sizes(), ", ")));
  }
  const auto cube = map.detach().to(torch::kCPU, torch::kFloat64);
  const auto nchan = cube.size(0);
  const auto channels = shown_channels(nchan, most_maps);
  auto style = panel_style(cube.index_select(0, torch::tensor(channels)), ColourScale::sequential);
  style.unit = options.unit;
  style.extent = {options.first, options.last, options.inner, options.outer};
  style.x_label = "azimuth from the major axis, to the East (deg)";
  style.y_label = "radius (″)";
  style.height_of_width = 0.62;
  Page page;
  const auto panels = static_cast<std::int64_t>(channels.size());
  page.columns = std::min<std::int64_t>(panels, panels == 4 ? 2 : 3);
  page.panel_width = panels == 1 ? 1000 : 640;
  page.panel_height = panels == 1 ? 660 : 430;
  if (nchan > 1) page.title = options.title;
  if (panels < nchan) page.title += fmt::format("{}{} of {} channels", page.title.empty() ? "" : ", ", panels, nchan);
  for (const auto channel : channels) {
    auto panel = style;
    panel.values = cube[channel];
    panel.title = map_title(options, channel, nchan);
    page.panels.emplace_back(std::move(panel));
  }
  return page;
}

}  // namespace mpol::plot
