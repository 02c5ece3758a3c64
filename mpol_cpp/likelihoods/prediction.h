#pragma once

#include <cstdint>
#include <functional>

#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::losses {

/// Relative error of predicted visibilities.
inline constexpr double prediction_tolerance = 1e-9;

/// Samples that are predicted at a time, at most.
inline constexpr std::int64_t prediction_block = std::int64_t{1} << 20;

/// Samples that are predicted at a time for an image: half of one for each pixel, lest the transforms of the image, one for
/// each block, take more time than the samples; at least a quarter of the most.
std::int64_t prediction_block_for(std::int64_t npix);

/// Visibilities of an image at the points of loose data, one data channel after the other, in float64 on the CPU:
///
///   V_k = cell_size^2 sum_{m,l} I(m,l) exp(-2 pi i (u_k l + v_k m))
///
/// Memory is that of one block of samples, whatever their number.
/// @param sky       (nchan, npix, npix) Jy/arcsec^2, sky orientation, any floating dtype and device
/// @param channels  which data channels belong to which image channel
/// @param use       called with each data channel, the first sample of a block, and the model there, complex128, Jy
/// @throws ShapeError for another image; DataError when baselines do not fit the grid; ValueError for a channel that is not there
void for_each_prediction(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                         const ChannelMap& channels,
                         const std::function<void(std::int64_t channel, std::int64_t begin, const Tensor& model)>& use);

/// The same of one image at given points. Use blocks of up to `prediction_block` of them.
/// @param sky_channel  (npix, npix) Jy/arcsec^2, sky orientation, float64 on the CPU
/// @param u, v         (n) wavelengths, float64
/// @return             (n) complex128, Jy
/// @throws DataError when the points do not fit the grid
Tensor predicted_block(const GridCoords& coords, const Tensor& sky_channel, const Tensor& u, const Tensor& v);

/// All of them, (data channels, nvis) complex128, Jy; channels that no image channel has are 0.
Tensor predicted_visibilities(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                              const ChannelMap& channels);

/// The same data less those of an image, in the dtype of the data, with their weights.
Visibilities residual_visibilities(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                                   const ChannelMap& channels);

/// chi^2 = sum_k w_k |V_k - d_k|^2 of the loose visibilities.
double loose_chi_squared(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                         const ChannelMap& channels);

}  // namespace mpol::losses
