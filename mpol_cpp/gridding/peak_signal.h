#pragma once

#include <algorithm>
#include <vector>

#include <mpol_cpp/datasets/gridded_dataset.h>

namespace mpol {

/// How far a source stands out of the noise before anything is fitted: the peak of the dirty image with natural weights over the
/// standard deviation that the weights promise it, of the channel with the most signal (largest sum W |V|^2 less the noise's).
/// About 4 where there is nothing but noise. One transform of an image, on the CPU.
/// @param dataset  float64, on the CPU
double peak_signal_to_noise(const GriddedDataset& dataset);

/// The signal of the channel that peak_signal_to_noise() is of: its sum W |V|^2 less the noise's; no data have none.
/// @param dataset  float64, on the CPU
double strongest_signal(const GriddedDataset& dataset);

/// What stands out of the noise before anything is fitted, in the channel of peak_signal_to_noise(); each peak of a dirty image
/// over the standard deviation that the weights promise it.
struct DirtyPeaks {
  double brightest = 0, darkest = 0;  ///< with natural weights; the latter is how far it goes below zero
  double on_any_scale = 0;            ///< the largest of either sign, also with Gaussian tapers, which show larger sources
  double share_on_scale = 0;          ///< of the field, within which the map with that largest one exceeds 0.7 of it

  /// The same of a source that may be of either sign, for which both are `brightest`.
  DirtyPeaks of_either_sign() const { return {std::max(brightest, darkest), darkest, on_any_scale, share_on_scale}; }
};

/// Noise alone reaches 4 to 5 on any scale. Up to eight transforms of an image, on the CPU.
/// @param dataset  float64, on the CPU
DirtyPeaks dirty_peaks(const GriddedDataset& dataset);

/// The same of each channel. Where one scale shows a source at 20 times the noise or more, no others are looked at.
/// @param dataset  float64, on the CPU
std::vector<DirtyPeaks> dirty_peaks_of_channels(const GriddedDataset& dataset);

/// The share of the field in which the magnitude of an image, after a Gaussian of 1.2 fringes of the longest baseline, exceeds
/// its noise: that of a point with natural weights. Not more than what it exceeds three times tells, of which noise makes little:
/// a Gaussian of s times the noise has ln(s)/ln(s/3) times that share above once the noise. Mean over channels; 0 where there are
/// no data.
/// @param sky           (nchan, npix, npix), Jy/arcsec^2
/// @param dataset       float64, on the CPU
/// @param noise_factor  by which the noise is larger than the weights say
double filled_share(const torch::Tensor& sky, const GriddedDataset& dataset, double noise_factor = 1);
/// The same of each channel.
std::vector<double> filled_shares(const torch::Tensor& sky, const GriddedDataset& dataset, double noise_factor = 1);

}  // namespace mpol
