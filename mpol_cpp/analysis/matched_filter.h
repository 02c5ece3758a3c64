#pragma once

#include <cstdint>
#include <string>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

using torch::Tensor;

/// Options of matched_filter().
struct MatchedFilterOptions {
  /// Precision of the transform and of the sums within a block of samples; blocks are added in float64.
  TORCH_ARG(torch::Dtype, dtype) = torch::kFloat32;
  /// Relative error of the templates' visibilities.
  TORCH_ARG(double, tolerance) = 1e-6;
  /// Most samples that are correlated at a time, > 0; memory follows them, the result only to rounding.
  TORCH_ARG(std::int64_t, block) = std::int64_t{1} << 18;
  /// u and v in wavelengths differ from channel to channel where they were measured in metres. A template is transformed at
  /// those of one channel for all neighbours at which no phase of its pixels is off by more than this, radian, > 0. What
  /// is lost of the response is at most half its square.
  TORCH_ARG(double, phase_error) = 0.1;
};

/// What a matched filter found at each position of its templates along the channels. float64 on the CPU.
struct FilterResponse {
  Tensor response;         ///< (ntemplates, npositions): signal in units of its own noise
  Tensor amplitude;        ///< (ntemplates, npositions): the template times this fits the data there best
  Tensor amplitude_error;  ///< (ntemplates, npositions): one standard deviation
  Tensor middle_channel;   ///< (npositions) data channel under the middle of the template, a half between two
  Tensor frequency;        ///< (npositions) Hz at the middle of the template; undefined where the data have none
};

/// Matched filter for lines in the visibilities. A template of K channels is laid on the data's channels p, …, p + K - 1, for
/// each p at which all of it is within the band (npositions = nchan - K + 1):
///
///   S_p = sum_{k,j} w_{p+k,j} Re( conj(T_{k,j}) V_{p+k,j} ),   N_p = sum_{k,j} w_{p+k,j} |T_{k,j}|^2
///   response = S_p / sqrt(N_p),   amplitude = S_p / N_p,   amplitude_error = 1 / sqrt(N_p)
///
/// over the samples j, with T the template's visibilities. White noise that agrees with the weights (1/sigma^2 of the
/// real = of the imaginary part) has a response of mean 0 and variance 1 at every position, and a line that is a times the
/// template one of a sqrt(N_p) there. Neighbouring positions are correlated as the template is with itself. The continuum is
/// part of the data: subtract it before.
///
/// It is computed by matrix products: A = Re(conj(T) (w V)^T) over blocks of samples, of which S_p is a sum along a diagonal. On
/// the CPU the result is the same for any number of threads.
/// @param visibilities  on any device, which computes
/// @param templates     (ntemplates, K, npix, npix) or (K, npix, npix), real, Jy/arcsec^2, sky orientation, in the order of the
///                      data's channels and as wide (see in_channel_order)
/// @throws ShapeError for other templates; DataError when they have more channels than the data, a template is 0 or not
///         finite, the baselines do not fit the grid, or the dtype cannot hold data and weights; ValueError for options out of
///         range
/// Source: Loomis et al. 2018, AJ 155, 182.
FilterResponse matched_filter(const Visibilities& visibilities, const Tensor& templates, const GridCoords& coords,
                              const MatchedFilterOptions& options = {});

/// The template in the order of the data's channels: turned round where its frequencies run the other way.
/// @param sky_cube              (nchan, …)
/// @param template_frequencies  (nchan) Hz
/// @param data_frequencies      of the data's channels, Hz
/// @throws ShapeError when cube and frequencies do not agree; DataError when channels are not evenly spaced, or their widths
///         differ by more than a hundredth
Tensor in_channel_order(const Tensor& sky_cube, const Tensor& template_frequencies, const Tensor& data_frequencies);

/// Spacing of channels in Hz, negative where frequencies decrease.
/// @param whose  for the message: "the data"
/// @throws DataError unless there are two that differ, and all are evenly spaced to a hundredth of a channel
double channel_spacing(const Tensor& frequencies, const std::string& whose);

/// The highest response of a template and the noise around it.
struct FilterPeak {
  std::int64_t position = 0;  ///< of the template along the channels, where the response is highest
  double response = 0;        ///< at that position, in units of its own noise
  /// 1.4826 times the median absolute deviation of the response where the template does not overlap that at the peak: 1
  /// where the weights are right. 0: no position is left.
  double noise = 0;
  double noise_error = 0;  ///< one standard deviation of `noise`, of as many independent positions as templates fit in
};

/// @param response  (npositions), of one template  @param nchan  channels of the template
/// @throws ShapeError for another shape
FilterPeak filter_peak(const Tensor& response, std::int64_t nchan);

}  // namespace mpol
