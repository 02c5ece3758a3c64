#pragma once

#include <vector>

#include <mpol_cpp/calibration/block_gain.h>
#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

/// Standard errors of a block's gain against those of all others; 0 of what is not fitted, infinite where the block has no part
/// of the uv plane in common with others.
///
/// They allow for an image that follows the data in each uv cell of the width 1/(8 r), r being the rms extent of the image's flux
/// along an axis: by a sample a block's gain is known as far as other blocks have weight in its cell. Priors that tie cells
/// together make the true error smaller.
struct GainErrors {
  double east = 0, north = 0;              ///< arcsec
  double amplitude = 0, weight_scale = 0;  ///< of the factors
};

/// What the data of a block say about its gain.
struct FittedGain {
  BlockGain gain;           ///< the best one
  GainErrors error;         ///< of it
  double chi_squared = 0;   ///< of the block's data with its gain, but with the weights as they are
  double samples = 0;       ///< complex visibilities
  double shared = 0;        ///< part of its weight in uv cells in which other blocks have samples too
  double significance = 0;  ///< how many times its error the model's amplitude in the block's data is
};

/// Fits the gain of each block to an image: the least of
///
///   -2 ln L = s sum_k w_k |a exp(-2 pi i (u_k l + v_k m)) V_k - d_k|^2 - 2 N ln s
///
/// over what is to be fitted. Given the image, blocks are independent, and each has a closed form but for the shift: a is
/// C/sum w|V|^2, s is 2N/chi^2, and (l, m) is where C(l, m) = Re sum w conj(V) d exp(2 pi i (u l + v m)) is largest, by Newton's
/// method from the shift so far, or from the brightest place of the image of C in the field where that is better by 25 in
/// chi^2: so no shift of several fringes is missed.
///
/// An image and gains leave open where the whole sky is, and how bright: the means over blocks of shift and ln a, weighted by
/// what each block knows of them (its curvature), are made 0. Weight scales are what they are.
/// @param sky       (nchan, npix, npix), Jy/arcsec^2, any floating dtype and device
/// @param channels  which data channels feed which image channel
/// @param start     one for each block; what is not fitted stays as it is there
/// @throws ValueError for fewer than two blocks, for nothing to fit, or another number of starts; DataError where the data of a
///         block do not follow the image at all (an amplitude that is not above 0); ShapeError
std::vector<FittedGain> fit_gains(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                                  const ChannelMap& channels, const SampleBlocks& blocks, const GainKinds& kinds,
                                  const std::vector<BlockGain>& start);

}  // namespace mpol
