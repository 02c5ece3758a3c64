#include <mpol_cpp/plot/figures/visibility_figure.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/plot/figures/coverage_figure.h>

namespace mpol::plot {
namespace {

constexpr std::int64_t samples_per_block = 1 << 16;

/// Sums over the samples of one ring.
struct RingSums {
  double samples = 0, weight = 0, q = 0, power = 0;
  std::complex<double> vector = 0;
};

/// Calls visit(q, v is the lower half, V, w) for every sample of every channel.
template <typename Visit>
void for_each_sample(const Visibilities& visibilities, const Visit& visit) {
  for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
    for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += samples_per_block) {
      const auto end = std::min(begin + samples_per_block, visibilities.nvis());
      const auto [u, v, data, weights] = visibilities.block(channel, begin, end);
      const auto *u_of = u.const_data_ptr<double>(), *v_of = v.const_data_ptr<double>();
      const auto* value = data.const_data_ptr<c10::complex<double>>();
      for (std::int64_t i = 0; i < end - begin; ++i) {
        const bool lower_half = v_of[i] < 0 || (v_of[i] == 0 && u_of[i] < 0);
        visit(std::hypot(u_of[i], v_of[i]), lower_half, std::complex<double>(value[i]), weights.const_data_ptr<double>()[i]);
      }
    }
  }
}

void append_model(VisibilityBins& bins, const RingSums& sums) {
  bins.q.push_back(sums.q / sums.weight);
  bins.amplitude.push_back(std::sqrt(sums.power / sums.weight));
  bins.amplitude_error.push_back(0);
  bins.phase.push_back(std::arg(sums.vector) / units::degree);
  bins.phase_error.push_back(0);
}

void append(VisibilityBins& bins, const RingSums& sums) {
  const double power = std::max(0.0, (sums.power - 2 * sums.samples) / sums.weight);
  const double amplitude = std::sqrt(power);
  // Var(sum w |V|^2 / sum w) = (4 A^2 sum w + 4 n) / (sum w)^2 for noise of variance 1/w in each part.
  const double power_error = 2 * std::sqrt(power * sums.weight + sums.samples) / sums.weight;
  const auto mean = sums.vector / sums.weight;
  const double radian = 1 / (std::abs(mean) * std::sqrt(sums.weight));
  const bool known = radian < 1.0 / 3;
  bins.q.push_back(sums.q / sums.weight);
  bins.amplitude.push_back(amplitude);
  bins.amplitude_error.push_back(power_error / (2 * std::max(amplitude, std::sqrt(power_error))));
  bins.phase.push_back(known ? std::arg(mean) / units::degree : std::numeric_limits<double>::quiet_NaN());
  bins.phase_error.push_back(known ? radian / units::degree : 0);
}

std::vector<double> in_kilo(const std::vector<double>& values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back(value / 1e3);
  return result;
}

CurvePanel panel_of_baselines(const std::string& title, const std::string& y_label) {
  CurvePanel panel;
  panel.title = title;
  panel.x_label = "baseline (kλ)";
  panel.y_label = y_label;
  return panel;
}

CurvePanel binned_amplitude_panel(const VisibilityBins& data, const std::optional<VisibilityBins>& model) {
  auto panel = panel_of_baselines("amplitude", "|V| (Jy)");
  panel.y_scale = AxisScale::logarithmic;
  panel.curves.push_back({model ? "data" : "", CurveStyle::points, in_kilo(data.q), data.amplitude, data.amplitude_error});
  if (model) panel.curves.push_back({"model", CurveStyle::line, in_kilo(model->q), model->amplitude});
  return panel;
}

CurvePanel binned_phase_panel(const VisibilityBins& data, const std::optional<VisibilityBins>& model) {
  auto panel = panel_of_baselines("phase", "phase, v > 0 (°)");
  panel.y_range = {-180.0, 180.0};
  const auto q = in_kilo(data.q);
  panel.curves.push_back({"", CurveStyle::guide, {q.front(), q.back()}, {0, 0}});
  panel.curves.push_back({model ? "data" : "", CurveStyle::points, q, data.phase, data.phase_error});
  if (model) panel.curves.push_back({"model", CurveStyle::line, in_kilo(model->q), model->phase});
  return panel;
}

}  // namespace

VisibilityBins binned_visibilities(const Visibilities& visibilities, std::int64_t bins, NoiseBias noise_bias) {
  if (bins < 1) throw ValueError(fmt::format("{} bins of visibilities: at least 1", bins));
  double longest = 0;
  for_each_sample(visibilities, [&](double q, bool, std::complex<double>, double) { longest = std::max(longest, q); });
  const double width = longest * (1 + 1e-12) / static_cast<double>(bins);
  std::vector<RingSums> rings(static_cast<std::size_t>(bins));
  for_each_sample(visibilities, [&](double q, bool lower_half, std::complex<double> value, double weight) {
    auto& ring = rings[std::min(width > 0 ? static_cast<std::size_t>(q / width) : 0, rings.size() - 1)];
    ring.samples += 1;
    ring.weight += weight;
    ring.q += weight * q;
    ring.power += weight * std::norm(value);
    ring.vector += weight * (lower_half ? std::conj(value) : value);
  });
  VisibilityBins result;
  for (const auto& ring : rings) {
    if (!(ring.samples > 0)) continue;
    if (noise_bias == NoiseBias::subtract) append(result, ring);
    else append_model(result, ring);
  }
  return result;
}

Page visibility_page(const Visibilities& visibilities, const VisibilityFigureOptions& options) {
  const auto data = binned_visibilities(visibilities, options.bins);
  std::optional<VisibilityBins> model;
  if (options.model) model = binned_visibilities(*options.model, options.bins, NoiseBias::keep);
  Page page{.title = options.title, .columns = 3, .panels = {}, .panel_width = 560, .panel_height = 520};
  page.panels.emplace_back(coverage_panel(visibilities.baselines()));
  page.panels.emplace_back(binned_amplitude_panel(data, model));
  page.panels.emplace_back(binned_phase_panel(data, model));
  return page;
}

}  // namespace mpol::plot
