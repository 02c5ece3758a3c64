#include <mpol_cpp/plot/figures/residual_figure.h>

#include <algorithm>

#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

double highest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

/// Down to half of what one value in the emptiest bin gives.
std::array<double, 2> logarithmic_range(const std::vector<double>& density, const std::vector<double>& expected) {
  const double most = std::max(highest(density), highest(expected));
  double least = 1;
  for (const double value : density) {
    if (value > 0) least = std::min(least, value);
  }
  return {least / 2, 10 * std::max(most, least)};  // room for the legend
}

}  // namespace

Page residual_page(const ResidualHistogram& histogram, const std::string& title) {
  const auto bins = histogram.density.size(0);
  const auto middle = to_vector(0.5 * (histogram.edges.slice(0, 0, bins) + histogram.edges.slice(0, 1)));
  const auto density = to_vector(histogram.density), expected = to_vector(histogram.expected);
  CurvePanel panel;
  panel.x_label = "residual (σ)";
  panel.y_label = "part per σ";
  panel.curves.push_back({"residuals", CurveStyle::steps, middle, density});
  panel.curves.push_back({"unit Gaussian", CurveStyle::line, middle, expected});
  auto tails = panel;
  panel.y_range = {0.0, 1.25 * std::max(highest(density), highest(expected))};
  tails.y_scale = AxisScale::logarithmic;
  tails.y_range = logarithmic_range(density, expected);
  return {.title = title, .columns = 2, .panels = {panel, tails}, .panel_width = 620, .panel_height = 520};
}

}  // namespace mpol::plot
