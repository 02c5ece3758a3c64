#include <mpol_cpp/cli/report/report_figures.h>

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

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

struct Place {
  double east = 0, north = 0;  ///< arcsec
};

/// Where the flux of an image has its middle; the phase centre of an empty one.
Place center_of_flux(const Tensor& image, const GridCoords& coords) {
  const double flux = image.sum().item<double>();
  if (!(flux > 0)) return {};
  const double scale = 1 / (flux * units::arcsec);
  return {(image.sum(0) * coords.l_centers().flip({0})).sum().item<double>() * scale,
          (image.sum(1) * coords.m_centers()).sum().item<double>() * scale};
}

struct Profile {
  std::vector<double> radius, mean;
};

/// Means in rings of two pixels' width, without planes of the image's size as radial_i() needs.
Profile ring_means(const Tensor& image, const GridCoords& coords, const Place& center) {
  const double width = 2 * coords.cell_size();
  const auto npix = coords.npix();
  std::vector<double> sums(static_cast<std::size_t>(npix)), pixels(sums.size());
  const auto values = image.accessor<double, 2>();
  for (std::int64_t row = 0; row < npix; ++row) {
    const double y = static_cast<double>(row - npix / 2) * coords.cell_size() - center.north;
    for (std::int64_t column = 0; column < npix; ++column) {
      const double x = -static_cast<double>(column - (npix / 2 - 1)) * coords.cell_size() - center.east;
      const auto ring = static_cast<std::size_t>(std::hypot(x, y) / width);
      if (ring >= sums.size()) continue;
      sums[ring] += values[row][column];
      pixels[ring] += 1;
    }
  }
  Profile profile;
  const double reach = 0.5 * coords.cell_size() * static_cast<double>(npix);
  for (std::size_t ring = 0; ring < sums.size(); ++ring) {
    const double radius = (static_cast<double>(ring) + 0.5) * width;
    if (pixels[ring] == 0 || radius > reach) continue;
    profile.radius.push_back(radius);
    profile.mean.push_back(sums[ring] / pixels[ring]);
  }
  return profile;
}

plot::CurvePanel profile_panel(const Tensor& image, const GridCoords& coords, const SkyOffset& middle) {
  auto center = center_of_flux(image, coords);
  const double half = 0.5 * coords.cell_size() * static_cast<double>(coords.npix());
  if (std::max(std::abs(center.east), std::abs(center.north)) > 0.8 * half) center = {};
  const auto profile = ring_means(image, coords, center);
  plot::CurvePanel panel;
  panel.title = fmt::format("mean brightness about {:.2f}″ E, {:.2f}″ N", center.east + middle.east, center.north + middle.north);
  panel.x_label = "radius (″)";
  panel.y_label = "Jy/arcsec²";
  panel.curves.push_back({"", plot::CurveStyle::line, profile.radius, profile.mean});
  return panel;
}

plot::ImagePanel wide_panel(const WideMap& wide, double noise) {
  auto panel = plot::panel_style(wide.image, plot::ColorScale::diverging);
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

plot::Page report_page(const GridCoords& coords, const Tensor& sky, const DirtyProducts& dirty, const SkyOffset& center) {
  const auto& remainder = dirty.remainder;
  auto page = plot::residual_page(remainder.histogram);
  for (auto& panel : page.panels) {
    auto& curves = std::get<plot::CurvePanel>(panel).curves;
    if (remainder.statistics.sigma_factor > 0) curves.push_back(own_gaussian(curves.back(), remainder.statistics.sigma_factor));
  }
  page.panels.emplace_back(profile_panel(sky[sky.size(0) / 2], coords, center));
  page.panels.emplace_back(wide_panel(remainder.wide, remainder.wide.noise));
  page.columns = 2;
  page.panel_width = report_panel_width;
  page.panel_height = report_panel_height;
  return page;
}

}  // namespace mpol::cli
