#include <mpol_cpp/objective/usual_units.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/two_digits.h>

namespace mpol {

double usual_units(const Regularizer& regularizer, double signal_to_noise, double noise_factor) {
  if (!regularizer.automatic) throw ValueError(fmt::format("{} has no usual weight: give it one", regularizer.name));
  const auto& [bright, faint] = *regularizer.automatic;
  const double signal = std::clamp(signal_to_noise / noise_factor, faint_signal, bright_signal);
  const double share = std::log(signal / faint_signal) / std::log(bright_signal / faint_signal);
  return two_digits(faint * std::pow(bright / faint, share) * noise_factor);
}

}  // namespace mpol
