#include <mpol_cpp/objective/usual_units.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/two_digits.h>
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

double filled_to_follow(const DirtyPeaks& peaks, double noise_factor, double filled, double present) {
  constexpr double clear_peak = 5, least_change = 1.2;
  if (peaks.on_any_scale < clear_peak * noise_factor) return least_filled;
  if (peaks.brightest < clear_peak * noise_factor) return usual_filled;
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
