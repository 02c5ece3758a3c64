#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/train/trainer.h>

namespace mpol::detail {

/// A loss that grew beyond this many times the larger of its first value and that of an empty image has exploded; it has
/// recovered when it ends below this part of the smaller of them.
inline constexpr double explosion_factor = 1e3, recovered_part = 0.9;
/// A rise below this part of the loss is rounding.
inline constexpr double rounding_of_losses = 1e-6;
/// chi^2 of an image and of an empty one that differ by less than this part are the same to the data.
inline constexpr double empty_difference = 1e-9;
/// A fit of fewer epochs is too short to tell whether it is still moving.
inline constexpr std::int64_t fewest_judged_epochs = 20;
/// A fit moves where its flux or loss changes by more than this part of itself over the last tenth of its epochs.
inline constexpr double moving_flux = 0.02, moving_loss = 0.01;

/// The epochs after which the flux of the image is taken, to be compared with that in the end; -1 where a fit is too short.
std::int64_t marked_epochs(std::int64_t epochs);

/// The flux of all channels and problems, Jy, after some epochs.
struct FluxMark {
  std::int64_t epochs = 0;
  double flux = 0;
  double magnitude = 0;  ///< the flux of the pixels' magnitudes, beside which it is judged; of positive pixels it may be left out
};

/// What is known of a fit's last image beside its loss.
struct FinalImage {
  double flux = 0;  ///< of all channels and problems, Jy
  std::int64_t problems = 1;
  std::int64_t dead = 0;                 ///< problems whose image the data cannot tell from an empty one
  std::optional<double> change = {};     ///< of a fit that was to converge: ImageTrail::Change::image
  std::optional<double> empty_nll = {};  ///< of an empty image, summed over problems; none where it cannot be evaluated
};

/// What is to be said about a fit that stayed with finite numbers.
struct FitVerdict {
  bool diverged = false;  ///< it exploded: the diagnosis says how
  std::string diagnosis;
  std::vector<std::string> warnings;
};

/// Judges a fit by its losses and its last image:
///   diverged: the loss exploded and did not recover, or ended with a dead image; or the image died and the loss is above that
///             at the start, unless it converged;
///   warnings: the loss of a fit that did not converge ended above the start; an image died; flux or loss were still moving when
///             the epochs ended; a fit that was to converge did not. None of a fit that a callback ended before its end.
/// @param fit        with its history, final loss and reason to stop
/// @param mark       the flux after marked_epochs(fit.epochs), or where a fit that was to converge had done half its epochs
/// @param tolerance  within which the fit was to converge, if it was
FitVerdict judge_fit(const TrainResult& fit, const FinalImage& image, const std::optional<FluxMark>& mark,
                     std::optional<double> tolerance = std::nullopt);

}  // namespace mpol::detail
