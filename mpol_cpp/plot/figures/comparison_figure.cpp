#include <mpol_cpp/plot/figures/comparison_figure.h>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {

Page comparison_page(const Tensor& a, const Tensor& b, const GridCoords& coords, const ComparisonFigureOptions& options) {
  const auto first = as_cube(a, coords), second = as_cube(b, coords);
  if (first.sizes() != second.sizes())
    throw ShapeError(fmt::format("comparison of {} channels with {}", first.size(0), second.size(0)));
  const auto difference = second - first;
  const auto nchan = first.size(0);
  const auto channel = options.channel.value_or(difference.abs().amax({1, 2}).argmax().item<std::int64_t>());
  if (channel < 0 || channel >= nchan) throw ValueError(fmt::format("comparison of channel {}: there are {}", channel, nchan));

  const auto both = at::stack({first[channel], second[channel]});
  auto style = panel_style(both, options.lower ? ColorScale::sequential : suitable_scale(both));
  if (options.upper && style.scale == ColorScale::diverging) style.lower = -*options.upper;
  if (options.lower) style.lower = *options.lower;
  if (options.upper) style.upper = *options.upper;
  style.norm = options.norm;
  style.unit = options.unit;
  style.extent = coords.img_ext();
  Page page{.title = nchan > 1 ? fmt::format("channel {}", channel) : "",
            .columns = 3,
            .panels = {},
            .panel_width = 620,
            .panel_height = 520};
  const auto add = [&](ImagePanel panel, const std::string& title, const Tensor& values) {
    panel.title = title;
    panel.values = values;
    if (options.half_width) crop(panel, *options.half_width);
    page.panels.emplace_back(std::move(panel));
  };
  add(style, options.name_a, first[channel]);
  add(style, options.name_b, second[channel]);
  auto signed_style = panel_style(difference[channel], ColorScale::diverging);
  signed_style.unit = options.unit;
  signed_style.extent = coords.img_ext();
  add(signed_style, fmt::format("{} − {}", options.name_b, options.name_a), difference[channel]);
  return page;
}

}  // namespace mpol::plot
