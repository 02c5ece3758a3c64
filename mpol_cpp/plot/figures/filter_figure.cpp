#include <mpol_cpp/plot/figures/filter_figure.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::plot {
namespace {

constexpr std::size_t most_filters = 6;
constexpr double significant = 5;

std::size_t peak_of(const FilterCurve& curve) {
  return static_cast<std::size_t>(
      std::distance(curve.response.begin(), std::max_element(curve.response.begin(), curve.response.end())));
}

/// Those with the highest peaks, in their order.
std::vector<FilterCurve> shown_filters(const std::vector<FilterCurve>& curves) {
  if (curves.size() <= most_filters) return curves;
  std::vector<double> peaks;
  for (const auto& curve : curves) peaks.push_back(curve.response[peak_of(curve)]);
  auto sorted = peaks;
  std::nth_element(sorted.begin(), sorted.begin() + most_filters - 1, sorted.end(), std::greater<>());
  std::vector<FilterCurve> shown;
  for (std::size_t i = 0; i < curves.size() && shown.size() < most_filters; ++i)
    if (peaks[i] >= sorted[most_filters - 1]) shown.push_back(curves[i]);
  return shown;
}

Curve level(double x_begin, double x_end, double y) { return {"", CurveStyle::guide, {x_begin, x_end}, {y, y}}; }

}  // namespace

Page filter_page(const std::vector<FilterCurve>& curves, const std::string& x_label, const std::string& title) {
  if (curves.empty()) throw ValueError("a figure of a matched filter needs a response");
  for (const auto& curve : curves) {
    if (curve.x.empty() || curve.x.size() != curve.response.size()) {
      throw ValueError(fmt::format("the response {} has {} values at {} positions; it needs one at each", curve.name,
                                   curve.response.size(), curve.x.size()));
    }
  }
  CurvePanel panel;
  panel.x_label = x_label;
  panel.y_label = "response (σ)";
  const auto shown = shown_filters(curves);
  double begin = shown.front().x.front(), end = begin;
  for (const auto& curve : shown) {
    const auto [low, high] = std::minmax_element(curve.x.begin(), curve.x.end());
    begin = std::min(begin, *low);
    end = std::max(end, *high);
  }
  for (const double y : {0.0, significant, -significant}) panel.curves.push_back(level(begin, end, y));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto& curve = shown[i];
    const auto peak = peak_of(curve);
    const auto label = fmt::format("{}: {:.3g} σ", curve.name, curve.response[peak]);
    const bool alone = curve.x.size() == 1;
    panel.curves.push_back({label, alone ? CurveStyle::points : CurveStyle::line, curve.x, curve.response, {}, i});
    if (!alone) panel.curves.push_back({"", CurveStyle::points, {curve.x[peak]}, {curve.response[peak]}, {}, i});
  }
  const auto rest = curves.size() > shown.size()
                        ? fmt::format("{}the {} highest of {} templates", title.empty() ? "" : ", ", shown.size(), curves.size())
                        : std::string();
  return {.title = title + rest, .columns = 1, .panels = {panel}, .panel_width = 1000, .panel_height = 560};
}

}  // namespace mpol::plot
