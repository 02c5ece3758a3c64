#pragma once

#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

/// Up to here data are faint, and from there on bright: peaks of dirty images over their noise (gridding/peak_signal.h).
inline constexpr double faint_signal = 10, bright_signal = 100;

/// The weight in units of noise (lambda_unit) that a fit takes where nobody says another: `automatic.faint` of faint data,
/// `automatic.bright` of bright ones, between them along the logarithms; two digits. Of regularizers that a fit has by itself.
/// Source: docs/lambda.md, where such weights were compared with the best.
/// @param signal_to_noise  peak_signal_to_noise() of the data
/// @param noise_factor     by which the noise is larger than the weights say (FitNoise)
/// @throws ValueError for a regularizer that no fit has by itself
double usual_units(const Regularizer& regularizer, double signal_to_noise, double noise_factor = 1);

}  // namespace mpol
