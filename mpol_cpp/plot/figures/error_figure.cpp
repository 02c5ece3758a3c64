#include <mpol_cpp/plot/figures/error_figure.h>

#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

const std::vector<double> levels_of_errors = {3, 5, 10, 20, 50, 100, 200, 500};

}  // namespace

Page error_page(const ErrorFigure& figure) {
  const auto nchan = as_cube(figure.image, figure.coords).size(0), channel = nchan / 2;
  const auto panel_of = [&](const Tensor& map, const std::string& name, const std::string& unit) {
    const auto values = as_cube(map, figure.coords)[channel];
    auto panel = panel_style(values, ColourScale::sequential);
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
  image.contours = Contours{as_cube(figure.signal_to_noise, figure.coords)[channel], levels_of_errors};
  Page page;
  page.columns = 3;
  page.panel_width = 620;
  page.panel_height = 520;
  page.panels = {std::move(image), panel_of(figure.error, "error", unit),
                 panel_of(figure.signal_to_noise, "image over error", "σ")};
  return page;
}

}  // namespace mpol::plot
