#include <mpol_cpp/plot/figures/coverage_figure.h>

#include <algorithm>

namespace mpol::plot {

CurvePanel coverage_panel(const Baselines& baselines) {
  constexpr std::int64_t most = 20000, block = 1 << 16;
  const auto nvis = baselines.nvis(), channels = baselines.nchan();
  const auto stride = std::max<std::int64_t>(1, nvis * channels / most);
  CurvePanel panel;
  panel.title = "uv coverage";
  panel.x_label = "u (kλ)";
  panel.y_label = "v (kλ)";
  panel.equal_axes = true;
  Curve curve{"", CurveStyle::points, {}, {}};
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t begin = 0; begin < nvis; begin += block) {
      const auto [u, v] = baselines.block(channel, begin, std::min(begin + block, nvis));
      const auto skipped = (stride - begin % stride) % stride;
      for (auto i = skipped; i < u.size(0); i += stride) {
        const double x = u.const_data_ptr<double>()[i] / 1e3, y = v.const_data_ptr<double>()[i] / 1e3;
        curve.x.insert(curve.x.end(), {x, -x});
        curve.y.insert(curve.y.end(), {y, -y});
      }
    }
  }
  panel.curves.push_back(std::move(curve));
  return panel;
}

Page coverage_page(const Baselines& baselines, const std::string& title) {
  auto panel = coverage_panel(baselines);
  panel.title = title;
  return {.title = "", .columns = 1, .panels = {panel}, .panel_width = 760, .panel_height = 760};
}

}  // namespace mpol::plot
