#include <mpol_cpp/objective/usual_units.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/two_digits.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol {

double usual_units(const Regularizer& regularizer, double signal_to_noise, double noise_factor, double filled) {
  if (!regularizer.automatic) throw ValueError(fmt::format("{} has no usual weight: give it one", regularizer.name));
  const auto& usual = *regularizer.automatic;
  const double emptier = usual_filled / std::max(filled, least_filled);
  const double bright = usual.bright * std::pow(std::max(emptier, 1.0), usual.bright_power);
  const double faint = usual.faint * std::pow(emptier, usual.faint_power);
  const double signal = std::clamp(signal_to_noise / noise_factor, faint_signal, bright_signal);
  const double share = std::log(signal / faint_signal) / std::log(bright_signal / faint_signal);
  return two_digits(faint * std::pow(bright / faint, share) * noise_factor);
}

std::vector<ChannelSignal> channel_signals(const GriddedDataset& cells, const Visibilities& visibilities,
                                           const ChannelMap& channels, double normalizer, bool either_sign) {
  const auto peaks = dirty_peaks_of_channels(cells);
  const auto units = noise_units_of_channels(cells->coords(), visibilities, channels, normalizer);
  std::vector<ChannelSignal> signals;
  for (std::size_t c = 0; c < peaks.size(); ++c)
    signals.push_back({either_sign ? peaks[c].of_either_sign() : peaks[c], units.at(c)});
  return signals;
}

Term with_channel_weights(const Term& term, std::vector<double> weights) {
  const double largest = *std::max_element(weights.begin(), weights.end());
  if (largest > 0) {
    for (auto& weight : weights) weight /= largest;
  }
  return term.with_weights({largest}).with_channel_factors(std::move(weights));
}

Term with_usual_weights(const Term& term, const std::vector<ChannelSignal>& channels, double noise_factor,
                        const std::vector<double>& filled) {
  std::vector<double> weights;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto& [peaks, unit] = channels[c];
    weights.push_back(unit * usual_units(regularizer_of(term.kind()), peaks.brightest, noise_factor, filled.at(c)));
  }
  return with_channel_weights(term, std::move(weights));
}

std::vector<double> filled_to_follow(const std::vector<ChannelSignal>& channels, double noise_factor, const Tensor& sky,
                                     const GriddedDataset& cells, const std::vector<double>& present) {
  const auto shares = filled_shares(sky, cells, noise_factor);
  auto filled = present;
  for (std::size_t c = 0; c < shares.size(); ++c) {
    if (sky[static_cast<std::int64_t>(c)].any().item<bool>())
      filled.at(c) = filled_to_follow(channels.at(c).peaks, noise_factor, shares[c], present[c]);
  }
  return filled;
}

double filled_to_follow(const DirtyPeaks& peaks, double noise_factor, double filled, double present) {
  constexpr double clear_peak = 5, least_change = 1.2;
  if (peaks.on_any_scale < clear_peak * noise_factor) return least_filled;
  if (peaks.brightest < clear_peak * noise_factor) filled = std::clamp(peaks.share_on_scale, least_filled, usual_filled);
  for (const auto kind : all_regularizers()) {
    const auto& regularizer = regularizer_of(kind);
    if (!regularizer.automatic) continue;
    const double change = usual_units(regularizer, peaks.brightest, noise_factor, filled) /
                          usual_units(regularizer, peaks.brightest, noise_factor, present);
    if (std::max(change, 1 / change) > least_change) return std::max(filled, least_filled);
  }
  return present;
}

}  // namespace mpol
