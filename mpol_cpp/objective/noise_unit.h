#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/objective/term.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// What the noise of the data does to chi^2/(2 N) of an image; weights w (Jy^-2) are taken as the data have them.
struct NoiseUnit {
  /// Standard deviation of its slope by a pixel, U = cell^2 sqrt(sum w / channels) / N, arcsec^2/Jy.
  double slope;
  /// Its curvature by a pixel, cell^4 (sum w / channels) / N = U^2 N, arcsec^4/Jy^2.
  double curvature;
  /// Channels of the image.
  std::int64_t nchan = 1;
};

/// @param nchan       of the image
/// @param normalizer  N, by which chi^2/2 is divided (Objective::normaliser())
/// @throws ValueError for a normalizer that is not above 0
NoiseUnit noise_unit(const GridCoords& coords, const Visibilities& visibilities, std::int64_t nchan, double normalizer);
/// The same of data whose weights have this sum, Jy^-2.
NoiseUnit noise_unit(const GridCoords& coords, double weights, std::int64_t nchan, double normalizer);

/// U of each channel of a cube, NoiseUnit::slope of its data alone. @param normalizer  N, of all channels together
std::vector<double> noise_units_of_channels(const GridCoords& coords, const Visibilities& visibilities,
                                            const ChannelMap& channels, double normalizer);

/// The natural unit of a term's weight lambda, in which the best weight stays about where it is while coverage, noise, cells and
/// fields change lambda by hundreds:
///
///   degree one (sparsity, tv, ...)          U: lambda = c U asks whether a pixel is worth c standard deviations
///   degree one in the norms of spectra      U sqrt(channels), the same of a pixel's spectrum
///   entropy                                 U zeta, of which its slope is ln(I/p) + 1 times as large
///   degree two (tsv, psd, ...)              U^2 N / (2 R(one pixel of 1)): the term curves as much as the data by a pixel;
///                                           its best c falls with the square of signal to noise
///
/// (NoiseScale of each regularizer) and nothing for other terms. The weight that the term has plays no part.
std::optional<double> lambda_unit(const Term& term, const NoiseUnit& noise, const GridCoords& coords);

}  // namespace mpol
