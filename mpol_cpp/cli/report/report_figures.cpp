#include <mpol_cpp/cli/report/report_figures.h>

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/plot/figures/residual_figure.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::cli {
namespace {

/// The Gaussian of the residuals' own scatter, beside that of the weights.
plot::Curve own_gaussian(const plot::Curve& unit_gaussian, double sigma) {
  plot::Curve curve{fmt::format("Gaussian of {:.2f} σ", sigma), plot::CurveStyle::dashes, unit_gaussian.x, {}};
  for (const double x : curve.x) curve.y.push_back(std::exp(-0.5 * x * x / (sigma * sigma)) / (sigma * std::sqrt(2 * units::pi)));
  return curve;
}

/// Where the flux of an image has its middle; the phase centre of an empty one.
DiscGeometry centre_of_flux(const Tensor& image, const GridCoords& coords) {
  const double flux = image.sum().item<double>();
  if (!(flux > 0)) return {};
  return {.offset_east = (image * coords.sky_x()).sum().item<double>() / flux,
          .offset_north = (image * coords.sky_y()).sum().item<double>() / flux};
}

plot::CurvePanel profile_panel(const Tensor& image, const GridCoords& coords) {
  auto centre = centre_of_flux(image, coords);
  const double half = 0.5 * coords.cell_size() * static_cast<double>(coords.npix());
  if (std::max(std::abs(centre.offset_east), std::abs(centre.offset_north)) > 0.8 * half) centre = {};
  const auto profile = radial_i(image.unsqueeze(0), coords, centre);
  plot::CurvePanel panel;
  panel.title = fmt::format("mean brightness about {:.2f}″ E, {:.2f}″ N", centre.offset_east, centre.offset_north);
  panel.x_label = "radius (″)";
  panel.y_label = "Jy/arcsec²";
  panel.curves.push_back({"", plot::CurveStyle::line, plot::to_vector(profile.radius), plot::to_vector(profile.mean[0])});
  return panel;
}

plot::ImagePanel wide_panel(const WideMap& wide, double noise) {
  auto panel = plot::panel_style(wide.image, plot::ColourScale::diverging);
  panel.values = wide.image;
  panel.extent = wide.coords.img_ext();
  panel.title = "residual beyond the field, short baselines";
  panel.unit = "Jy/beam";
  if (noise > 0) {
    panel.values = panel.values / noise;
    panel.lower /= noise;
    panel.upper /= noise;
    panel.unit = fmt::format("σ of noise, {:.2g} Jy/beam", noise);
  }
  panel.scale_bar = plot::default_scale_bar(wide.coords);
  return panel;
}

}  // namespace

plot::Page report_page(const GridCoords& coords, const Tensor& sky, const DirtyProducts& dirty) {
  const auto& remainder = dirty.remainder;
  auto page = plot::residual_page(remainder.histogram);
  for (auto& panel : page.panels) {
    auto& curves = std::get<plot::CurvePanel>(panel).curves;
    if (remainder.statistics.sigma_factor > 0) curves.push_back(own_gaussian(curves.back(), remainder.statistics.sigma_factor));
  }
  page.panels.emplace_back(profile_panel(sky[sky.size(0) / 2], coords));
  page.panels.emplace_back(wide_panel(remainder.wide, remainder.wide.noise));
  page.columns = 2;
  page.panel_width = report_panel_width;
  page.panel_height = report_panel_height;
  return page;
}

}  // namespace mpol::cli
