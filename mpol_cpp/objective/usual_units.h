#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/gridding/peak_signal.h>
#include <mpol_cpp/objective/term.h>
#include <mpol_cpp/regularizers/base/regularizer.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Up to here data are faint, and from there on bright: peaks of dirty images over their noise (gridding/peak_signal.h).
inline constexpr double faint_signal = 10, bright_signal = 100;

/// How much of its field a source fills as long as nothing else is known, and the least that counts: of filled_share().
inline constexpr double usual_filled = 0.03, least_filled = 2e-3;

/// The weight in units of noise (lambda_unit) that a fit takes where nobody says another: `automatic.faint` of faint data,
/// `automatic.bright` of bright ones, between them along the logarithms; two digits. Of regularizers that a fit has by itself.
/// Source: docs/lambda.md, where such weights were compared with the best.
/// @param signal_to_noise  peak_signal_to_noise() of the data
/// @param noise_factor     by which the noise is larger than the weights say (FitNoise)
/// @param filled           share of the field that the source fills, as filled_to_follow() makes it
/// @throws ValueError for a regularizer that no fit has by itself
double usual_units(const Regularizer& regularizer, double signal_to_noise, double noise_factor = 1, double filled = usual_filled);

/// What usual weights take for the share of the field that the source fills, once there is an image: that share; the present one
/// where no weight would change by more than a fifth; that of the dirty image, or the usual one if less, where the source is
/// found on no map but those of larger scales, of which the share says nothing; the least where nothing stands out of the noise.
/// @param filled   filled_share() of an image
/// @param present  what the weights of that image took for it
double filled_to_follow(const DirtyPeaks& peaks, double noise_factor, double filled, double present = usual_filled);

/// What the usual weights of a channel of a cube follow, where each has its own.
struct ChannelSignal {
  DirtyPeaks peaks;  ///< of its dirty image
  double unit = 0;   ///< U of its data (noise_units_of_channels)
};

/// Looks at each channel of a cube. @param cells  averages of the visibilities, float64, on the CPU
std::vector<ChannelSignal> channel_signals(const GriddedDataset& cells, const Visibilities& visibilities,
                                           const ChannelMap& channels, double normalizer, bool either_sign = false);

/// A term of a cube with a weight lambda for each channel. @throws ValueError as Term::with_channel_factors()
Term with_channel_weights(const Term& term, std::vector<double> weights);
/// A term of a cube with the usual weight of each channel, lambda = usual_units() times its U.
/// @param filled  of each channel, as filled_to_follow() makes it
/// @throws ValueError as usual_units(), and for a term that joins channels
Term with_usual_weights(const Term& term, const std::vector<ChannelSignal>& channels, double noise_factor,
                        const std::vector<double>& filled);

/// filled_to_follow() of each channel; of one without any light what is present. @param sky  (nchan, npix, npix)
std::vector<double> filled_to_follow(const std::vector<ChannelSignal>& channels, double noise_factor, const Tensor& sky,
                                     const GriddedDataset& cells, const std::vector<double>& present);

/// Fits of an image at most, each with weights for what the last one shows.
inline constexpr int most_usual_fits = 3;

/// After how many epochs somebody looks at what weights should be, of fits that are made for nothing else, as of a cube whose
/// channels all wait for the slowest, and of a first fit that has not converged by then: data that leave much open take thousands
/// with weights for a source of usual size. Noise above the weights' is misread
/// from such images: they set the size of sources, and of cubes noise below (noise_of_look).
inline constexpr std::int64_t epochs_of_look = 32, epochs_of_early_look = 256;

}  // namespace mpol
