#include <mpol_cpp/cli/measuring/spectrum_figure.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

constexpr std::size_t most_spectra = 7;  // as many as there are colours

/// Where the channels are drawn: at their frequencies in GHz, or by their numbers.
std::vector<double> places_of(std::size_t channels, const std::vector<double>& frequencies) {
  std::vector<double> x;
  for (std::size_t c = 0; c < channels; ++c) x.push_back(frequencies.empty() ? static_cast<double>(c) : frequencies[c] / 1e9);
  return x;
}

/// What holds all bars and zero, with room for the legend above them; unset: there is nothing to hold.
std::optional<std::array<double, 2>> range_of(const std::vector<FluxCurve>& curves, std::size_t shown) {
  double low = 0, high = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    for (std::size_t c = 0; c < curves[i].flux.size(); ++c) {
      if (!std::isfinite(curves[i].flux[c]) || !std::isfinite(curves[i].error[c])) continue;
      low = std::min(low, curves[i].flux[c] - curves[i].error[c]);
      high = std::max(high, curves[i].flux[c] + curves[i].error[c]);
    }
  }
  const double span = high - low;
  if (!(span > 0)) return std::nullopt;
  constexpr double margin = 0.05, of_a_name = 0.07;
  return std::array{low - margin * span, high + (margin + of_a_name * static_cast<double>(shown)) * span};
}

}  // namespace

plot::Page spectrum_page(const std::vector<FluxCurve>& curves, const std::vector<double>& frequencies) {
  if (curves.empty()) throw ValueError("a figure of spectra needs a source");
  const auto channels = curves.front().flux.size();
  for (const auto& curve : curves) {
    const bool fits = curve.flux.size() == channels && curve.error.size() == channels && channels > 0 &&
                      (frequencies.empty() || frequencies.size() == channels);
    if (fits) continue;
    throw ValueError(
        fmt::format("the spectrum of {} has {} fluxes and {} errors at {} frequencies; one of each channel is needed", curve.name,
                    curve.flux.size(), curve.error.size(), frequencies.size()));
  }
  const auto x = places_of(channels, frequencies);
  const auto shown = std::min(curves.size(), most_spectra);
  plot::CurvePanel panel;
  panel.x_label = frequencies.empty() ? "channel" : "frequency (GHz)";
  panel.y_label = "flux (Jy)";
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  panel.curves.push_back({"", plot::CurveStyle::guide, {*low, *high}, {0, 0}});
  panel.y_range = range_of(curves, shown);
  for (std::size_t i = 0; i < shown; ++i) {
    panel.curves.push_back({curves[i].name, plot::CurveStyle::points, x, curves[i].flux, curves[i].error, i});
    if (channels > 1) panel.curves.push_back({"", plot::CurveStyle::line, x, curves[i].flux, {}, i});
  }
  const auto title = shown < curves.size() ? fmt::format("{} of {} sources", shown, curves.size()) : std::string();
  return {.title = title, .columns = 1, .panels = {panel}, .panel_width = 1000, .panel_height = 560};
}

}  // namespace mpol::cli
