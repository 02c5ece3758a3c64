#include <mpol_cpp/plot/figures/error_figure.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

const std::vector<double> levels_of_errors = {3, 5, 10, 20, 50, 100, 200, 500};

const std::vector<double> outline_level = {0.5};  // between marked pixels and the others

void add_structure(Page& page, const StructureFigure& figure, const GridCoords& coords) {
  const auto image = as_cube(figure.image, coords), filled = as_cube(figure.filled, coords),
             least = as_cube(figure.least, coords);
  const auto channel = (image - filled).abs().sum({-2, -1}).argmax().item<std::int64_t>();
  const auto region = as_cube(figure.region.ne(0).to(torch::kFloat64), coords)[channel];
  const auto panel_of = [&](const Tensor& values, std::optional<ColorScale> scale, const std::string& words) {
    auto panel = panel_style(values, scale.value_or(suitable_scale(values)));
    panel.values = values;
    panel.extent = coords.img_ext();
    panel.title = image.size(0) == 1 ? words : fmt::format("{}, channel {}", words, channel);
    panel.unit = "Jy/arcsec²";
    panel.scale_bar = default_scale_bar(coords);
    panel.contours = Contours{region, outline_level};
    return panel;
  };
  const auto first = panel_of(image[channel], std::nullopt, figure.name);
  page.panels.emplace_back(first);
  const auto like_first = [&](const Tensor& values, const std::string& words) {
    auto panel = panel_of(values, first.scale, words);
    panel.lower = first.lower;
    panel.upper = first.upper;
    page.panels.emplace_back(std::move(panel));
  };
  like_first(filled[channel], "the region filled");
  like_first(least[channel], "the cheapest image without it");
  auto difference = panel_of(image[channel] - least[channel], ColorScale::diverging, "image minus the cheapest");
  difference.contours.reset();  // white lines, of which nothing would be seen
  page.panels.emplace_back(std::move(difference));
}

}  // namespace

Page error_page(const ErrorFigure& figure) {
  const auto nchan = as_cube(figure.image, figure.coords).size(0), channel = nchan / 2;
  const auto panel_of = [&](const Tensor& map, const std::string& name, const std::string& unit) {
    const auto values = as_cube(map, figure.coords)[channel];
    auto panel = panel_style(values);
    panel.values = values;
    panel.extent = figure.coords.img_ext();
    panel.title = nchan == 1 ? name : fmt::format("{}, channel {} of 0…{}", name, channel, nchan - 1);
    panel.unit = unit;
    panel.scale_bar = default_scale_bar(figure.coords);
    panel.beam = figure.beam;
    return panel;
  };
  const std::string unit = figure.beam ? "Jy/beam" : "Jy/arcsec²";
  auto image = panel_of(figure.image, "image; contours: 3, 5, 10, 20 … times its error", unit);
  image.contours = Contours{as_cube(figure.signal_to_noise, figure.coords)[channel].abs(), levels_of_errors};
  Page page;
  page.columns = 3;
  page.panel_width = 620;
  page.panel_height = 520;
  page.panels = {std::move(image), panel_of(figure.error, "error", unit),
                 panel_of(figure.signal_to_noise, "image over error", "σ")};
  return page;
}

Page structure_page(const std::vector<StructureFigure>& figures, const GridCoords& coords) {
  if (figures.empty()) throw ValueError("a figure of no structure: give at least one");
  Page page;
  page.columns = 4;
  page.panel_width = 620;
  page.panel_height = 520;
  for (const auto& figure : figures) add_structure(page, figure, coords);
  return page;
}

}  // namespace mpol::plot
