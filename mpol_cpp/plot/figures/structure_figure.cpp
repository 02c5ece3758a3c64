#include <mpol_cpp/plot/figures/structure_figure.h>

#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

const std::vector<double> outline = {0.5};  // between marked pixels and the others

void add_row(Page& page, const StructureFigure& figure, const GridCoords& coords) {
  const auto image = as_cube(figure.image, coords), filled = as_cube(figure.filled, coords), least = as_cube(figure.least, coords);
  const auto channel = (image - filled).abs().sum({-2, -1}).argmax().item<std::int64_t>();
  const auto region = as_cube(figure.region.ne(0).to(torch::kFloat64), coords)[channel];
  const auto panel_of = [&](const Tensor& values, ColourScale scale, const std::string& words) {
    auto panel = panel_style(values, scale);
    panel.values = values;
    panel.extent = coords.img_ext();
    panel.title = image.size(0) == 1 ? words : fmt::format("{}, channel {}", words, channel);
    panel.unit = "Jy/arcsec²";
    panel.scale_bar = default_scale_bar(coords);
    panel.contours = Contours{region, outline};
    return panel;
  };
  const auto first = panel_of(image[channel], ColourScale::sequential, figure.name);
  page.panels.emplace_back(first);
  const auto like_first = [&](const Tensor& values, const std::string& words) {
    auto panel = panel_of(values, ColourScale::sequential, words);
    panel.lower = first.lower;
    panel.upper = first.upper;
    page.panels.emplace_back(std::move(panel));
  };
  like_first(filled[channel], "the region filled");
  like_first(least[channel], "the cheapest image without it");
  auto difference = panel_of(image[channel] - least[channel], ColourScale::diverging, "image minus the cheapest");
  difference.contours.reset();  // white lines, of which nothing would be seen
  page.panels.emplace_back(std::move(difference));
}

}  // namespace

Page structure_page(const std::vector<StructureFigure>& figures, const GridCoords& coords) {
  if (figures.empty()) throw ValueError("a figure of no structure: give at least one");
  Page page;
  page.columns = 4;
  page.panel_width = 620;
  page.panel_height = 520;
  for (const auto& figure : figures) add_row(page, figure, coords);
  return page;
}

}  // namespace mpol::plot
