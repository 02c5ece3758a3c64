#include <mpol_cpp/plot/figures/training_figure.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

Curve curve_over_epochs(const std::string& label, const std::vector<double>& values, const std::vector<double>& epochs) {
  Curve curve{label, CurveStyle::line, epochs, values};
  if (!epochs.empty()) return curve;
  curve.x.reserve(values.size());
  for (std::size_t epoch = 0; epoch < values.size(); ++epoch) curve.x.push_back(static_cast<double>(epoch));
  return curve;
}

bool all_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

void add_image(Page& page, const TrainingFigure& training, const Tensor& image, const ImagePanel& role) {
  if (!image.defined()) return;
  const auto cube = as_cube(image, training.coords);
  const auto nchan = cube.size(0), channel = nchan / 2;
  auto panel = panel_style(cube[channel], role.scale);
  panel.values = cube[channel];
  panel.extent = training.coords.img_ext();
  panel.title = nchan == 1 ? role.title : fmt::format("{}, channel {} of 0…{}", role.title, channel, nchan - 1);
  panel.unit = role.unit;
  page.panels.emplace_back(std::move(panel));
}

CurvePanel rate_panel(const std::vector<double>& rate, const std::vector<double>& epochs) {
  CurvePanel panel;
  panel.title = "learning rate";
  panel.x_label = "epoch";
  panel.y_label = "learning rate";
  const auto [least, most] = std::minmax_element(rate.begin(), rate.end());
  if (all_positive(rate) && *most > 10 * *least) panel.y_scale = AxisScale::logarithmic;
  else panel.y_range = {std::min(0.0, *least), *most > 0 ? 1.1 * *most : 1.0};
  panel.curves.push_back(curve_over_epochs("", rate, epochs));
  return panel;
}

CurvePanel flux_panel(const EpochHistory& flux, const std::vector<double>& epochs) {
  constexpr std::size_t most_curves = 7;
  CurvePanel panel;
  panel.title = "flux";
  panel.x_label = "epoch";
  panel.y_label = "flux (Jy)";
  const auto shown = std::min(flux.size(), most_curves);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto channel = flux.size() <= most_curves ? i : i * (flux.size() - 1) / (most_curves - 1);
    auto curve = curve_over_epochs(flux.size() == 1 ? "" : fmt::format("channel {}", channel), flux[channel], epochs);
    if (curve.x.size() == 1) curve.style = CurveStyle::points;
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

/// Epochs at the beginning whose fall would hide everything after it: a twentieth of them.
std::size_t first_epoch_in_sight(std::size_t epochs) { return epochs < 40 ? 0 : epochs / 20; }

/// What a logarithmic axis shows of curves once their fall at the beginning is over, with room for a legend above them.
std::optional<std::array<double, 2>> settled_range(const std::vector<Curve>& curves) {
  double lower = std::numeric_limits<double>::infinity(), upper = 0;
  for (const auto& curve : curves) {
    for (auto i = first_epoch_in_sight(curve.y.size()); i < curve.y.size(); ++i) {
      if (!(curve.y[i] > 0) || !std::isfinite(curve.y[i])) continue;
      lower = std::min(lower, curve.y[i]);
      upper = std::max(upper, curve.y[i]);
    }
  }
  if (!(upper > 0)) return std::nullopt;
  const double decades = std::max(std::log10(upper / lower), 0.1), rows = static_cast<double>(curves.size());
  return std::array{lower * std::pow(10, -0.1 * decades), upper * std::pow(10, (0.15 + 0.08 * rows) * decades)};
}

}  // namespace

CurvePanel loss_panel(const std::vector<std::string>& names, const EpochHistory& history, const std::vector<double>& epochs) {
  constexpr std::size_t most_curves = 6;
  CurvePanel panel;
  panel.title = "loss";
  panel.x_label = "epoch";
  panel.y_label = "loss";
  const auto shown = std::min({names.size(), history.size(), most_curves});
  // A term that is switched off, or not positive, has no place on a logarithmic axis; the total decides.
  panel.y_scale = shown > 0 && all_positive(history.front()) ? AxisScale::logarithmic : AxisScale::linear;
  for (std::size_t i = 0; i < shown; ++i) panel.curves.push_back(curve_over_epochs(names[i], history[i], epochs));
  if (panel.y_scale == AxisScale::logarithmic) panel.y_range = settled_range(panel.curves);
  return panel;
}

Page training_page(const TrainingFigure& training) {
  Page page;
  page.title = training.title;
  page.panel_width = 620;
  page.panel_height = 520;
  ImagePanel role;
  role.title = "image";
  role.unit = "Jy/arcsec²";
  add_image(page, training, training.image, role);
  role.scale = ColorScale::diverging;
  role.title = "change of the image";
  add_image(page, training, training.change, role);
  role.title = "gradient of the loss";
  role.unit = "1/(Jy/arcsec²)";
  add_image(page, training, training.gradient, role);
  const auto& rate = training.learning_rate;
  const bool constant = !rate.empty() && std::adjacent_find(rate.begin(), rate.end(), std::not_equal_to<>()) == rate.end();
  if (!training.loss_history.empty()) {
    auto panel = loss_panel(training.loss_names, training.loss_history, training.loss_epochs);
    if (constant) panel.title += fmt::format(", learning rate {:.4g}", rate.front());
    page.panels.emplace_back(std::move(panel));
  }
  if (!rate.empty() && !constant) page.panels.emplace_back(rate_panel(rate, training.loss_epochs));
  if (!training.flux.empty()) page.panels.emplace_back(flux_panel(training.flux, training.flux_epochs));
  page.columns = std::min<std::int64_t>(3, static_cast<std::int64_t>(page.panels.size()));
  return page;
}

}  // namespace mpol::plot
