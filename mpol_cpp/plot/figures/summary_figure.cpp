#include <mpol_cpp/plot/figures/summary_figure.h>

#include <optional>
#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/figures/coverage_figure.h>
#include <mpol_cpp/plot/image_panel.h>
#include <mpol_cpp/plot/figures/training_figure.h>

namespace mpol::plot {
namespace {

/// What distinguishes the three images of a page.
struct ImageRole {
  const char* name;
  const char* unit;
  std::optional<ColorScale> scale;  ///< unset: suitable_scale()
};

ImagePanel image_panel(const SummaryFigure& summary, const Tensor& image, const ImageRole& role) {
  const auto cube = as_cube(image, summary.coords);
  const auto nchan = cube.size(0), channel = nchan / 2;
  auto panel = panel_style(cube[channel], role.scale.value_or(suitable_scale(cube[channel])));
  panel.values = cube[channel];
  panel.extent = summary.coords.img_ext();
  panel.title = nchan == 1 ? std::string(role.name) : fmt::format("{}, channel {} of 0…{}", role.name, channel, nchan - 1);
  panel.unit = role.unit;
  panel.scale_bar = default_scale_bar(summary.coords);
  return panel;
}

/// In units of the noise where that is known.
ImagePanel residual_panel(const SummaryFigure& summary) {
  auto panel = image_panel(summary, summary.residual, {"residual", "Jy/beam", ColorScale::diverging});
  panel.beam = summary.beam;
  if (summary.noise.empty()) return panel;
  const double noise = summary.noise[summary.noise.size() / 2];
  panel.values = panel.values / noise;
  panel.lower /= noise;
  panel.upper /= noise;
  panel.unit = fmt::format("σ of noise, {:.2g} Jy/beam", noise);
  return panel;
}

void add_images(Page& page, const SummaryFigure& summary) {
  if (summary.dirty.defined()) {
    auto panel = image_panel(summary, summary.dirty, {"dirty image", "Jy/beam", std::nullopt});
    panel.beam = summary.beam;
    page.panels.emplace_back(std::move(panel));
  }
  if (summary.model.defined())
    page.panels.emplace_back(image_panel(summary, summary.model, {"model", "Jy/arcsec²", std::nullopt}));
  if (summary.residual.defined()) page.panels.emplace_back(residual_panel(summary));
}

CurvePanel amplitude_panel(const SummaryFigure& summary) {
  CurvePanel panel;
  panel.title = "amplitude, noise bias of the data removed";
  panel.x_label = "baseline (kλ)";
  panel.y_label = "|V| (Jy)";
  panel.y_scale = AxisScale::logarithmic;
  std::vector<double> q;
  for (const double value : summary.amplitude_q) q.push_back(value / 1e3);
  panel.curves.push_back({"data", CurveStyle::points, q, summary.amplitude_data});
  if (!summary.amplitude_model.empty()) panel.curves.push_back({"model", CurveStyle::line, q, summary.amplitude_model});
  return panel;
}

}  // namespace

Page summary_page(const SummaryFigure& summary) {
  Page page;
  page.title = summary.title;
  page.columns = 3;
  page.panel_width = 620;
  page.panel_height = 520;
  add_images(page, summary);
  if (summary.baselines) page.panels.emplace_back(coverage_panel(*summary.baselines));
  if (!summary.amplitude_q.empty()) page.panels.emplace_back(amplitude_panel(summary));
  if (!summary.loss_history.empty())
    page.panels.emplace_back(loss_panel(summary.loss_names, summary.loss_history, summary.loss_epochs));
  return page;
}

}  // namespace mpol::plot
