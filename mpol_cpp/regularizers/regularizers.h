#pragma once

#include <torch/types.h>

/// Regularisers of images. Cubes are (…, nchan, npix, npix) in sky orientation, Jy/arcsec^2, any floating dtype and
/// device; leading dimensions are independent problems, and each function returns one float64 value per problem, (…).
/// @throws ShapeError unless the last three dimensions are there
namespace mpol::losses {

using torch::Tensor;

/// sum |I|, over the pixels where mask is true if one is given.
/// @param mask  bool, broadcastable to the cube, e.g. (npix, npix)
Tensor sparsity(const Tensor& sky_cube, const Tensor& mask = {});

/// Total variation of each channel image, summed over channels:
///   sum sqrt((I[c,i+1,j] - I[c,i,j])^2 + (I[c,i,j+1] - I[c,i,j])^2 + epsilon)
/// over the (npix-1)^2 block where both forward differences exist.
/// @param epsilon  Jy^2/arcsec^4, > 0, keeps the gradient finite where the image is flat
/// Source: Rudin, Osher & Fatemi 1992; the form of MPoL's TV_image.
Tensor tv_image(const Tensor& sky_cube, double epsilon = 1e-10);

/// Total variation between neighbouring channels, sum sqrt((I[c+1] - I[c])^2 + epsilon); 0 for one channel.
Tensor tv_channel(const Tensor& sky_cube, double epsilon = 1e-10);

/// Total squared variation, sum (I[c,i+1,j] - I[c,i,j])^2 + (I[c,i,j+1] - I[c,i,j])^2 over the block of tv_image.
Tensor tsv(const Tensor& sky_cube);

/// Intensities below this have the entropy's gradient at this value, where the formula's own would be -infinity.
inline constexpr double entropy_gradient_floor = 1e-30;  // Jy/arcsec^2

/// Entropy (1/zeta) sum I ln(I/p), with 0 ln 0 = 0.
/// @param prior_intensity  p, Jy/arcsec^2, > 0, broadcastable to the cube
/// @param total_flux       zeta, > 0
/// @throws DataError for a negative pixel; ValueError for p <= 0 or zeta <= 0
/// Source: EHT Collaboration IV 2019, eq. 6, as in MPoL.
Tensor entropy(const Tensor& sky_cube, const Tensor& prior_intensity, double total_flux = 10.0);
/// The same with one p for all pixels.
Tensor entropy(const Tensor& sky_cube, double prior_intensity, double total_flux = 10.0);

/// sum of squares of the four edge rows and columns (corners count twice): keeps flux off the border.
Tensor edge_clamp(const Tensor& sky_cube);

}  // namespace mpol::losses
