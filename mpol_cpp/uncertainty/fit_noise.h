#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/uncertainty/bootstrap.h>
#include <mpol_cpp/uncertainty/dirty_noise.h>

namespace mpol {

/// How much larger the noise of data is than their weights say, as what a converged fit leaves tells.
struct FitNoise {
  double of_samples = 1;  ///< of each visibility: the root of chi^2/(2 N)
  double shared = 1;      ///< how much more of it is in the image because visibilities share errors; 1 where that is not seen

  double factor() const { return of_samples * shared; }  ///< that of the image
  /// Whether the weights are too far off to be taken at their word: below 0.87 or above 1.15.
  bool is_off() const { return differs_from(1); }
  /// Whether it is so far from a factor for which weights of regularizers were set that they are to be set anew.
  bool differs_from(double other) const;
  /// What is left of it where a misfit of the image is known to be in both factors: no more than the weights say, nor than chi^2.
  FitNoise without_misfit() const { return {.of_samples = std::min(of_samples, 1.0)}; }
};

/// What weights of regularizers are to follow: `found`, or what they follow at present where that is near it, or 1 where that is.
FitNoise noise_to_follow(const FitNoise& found, const FitNoise& present);

/// What a fit that has not converged tells: noise above chi^2 there is none, as it leaves more than its end will; so that below
/// 1, without errors that are shared, and else nothing. @param reduced  its chi^2/(2 N)
FitNoise noise_of_look(double reduced);

/// The noise of data of which parts of one size were fitted apart: the root mean square of their factors and of their
/// visibilities'. That of no parts is 1.
FitNoise pooled_noise(const std::vector<FitNoise>& parts);

/// Whether a fit with weights for a noise refutes that noise: its chi^2/(2 N) is twice that of the fit that showed it. Where data
/// are noisier than their weights say, weights for that leave chi^2 nearly what it was; where priors and pixels keep the image
/// from a source, it grows with them.
inline bool refutes_noise(double reduced, double reduced_before) {
  constexpr double too_much = 2;
  return reduced_before > 0 && reduced > too_much * reduced_before;
}

/// How far measure_fit_noise goes after errors that are shared.
enum class SharedErrors {
  once,  ///< one round of simulated fits: for weights, as cross-validation of real data agrees with
  twice  ///< and another with noise that is larger by what the first found, of which the fit has followed a part: for errors
};

/// Measures it. Errors that visibilities share make the residual image scatter more than their own sizes say; where it does, by
/// a tenth, fits to data that are simulated with independent noise (Bootstrap::residual_ratio) tell what of that is the priors'
/// doing. What is left counts from 1.15 on: independent noise came to 0.98 to 1.06 (docs/lambda.md).
/// @param model    fitted; of one problem
/// @param unit     of these data and this objective
/// @param reduced  chi^2/(2 N) of the fit over all visibilities
/// @param noise    makes what draws noise of these data, where it is needed; empty: `shared` stays 1
/// @param options  of the simulated fits, but for their number and noise
FitNoise measure_fit_noise(const std::shared_ptr<GriddedNetImpl>& model, const Objective& objective, const NoiseUnit& unit,
                           double reduced, const std::function<DirtyNoise()>& noise, SharedErrors shared = SharedErrors::once,
                           BootstrapOptions options = {});

}  // namespace mpol
