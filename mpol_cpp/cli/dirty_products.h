#pragma once

#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/fits.h>

namespace mpol::cli {

/// Dirty images of the data and of what a model leaves of them, Briggs weighting with robust 0.5.
struct DirtyProducts {
  Tensor dirty;                     ///< (nchan, npix, npix) float64, Jy/beam, sky orientation
  Tensor residual;                  ///< the same of data minus model
  std::vector<io::FitsBeam> beams;  ///< one per channel; none when a channel's beam is no ellipse
};

/// The fitted beams of all channels as FITS headers hold them; none when a channel's beam is no ellipse.
std::vector<io::FitsBeam> fits_beams(const DirtyImager& imager);

/// @param dataset  float64, on the CPU
/// @param sky      model image (nchan, npix, npix) float64, Jy/arcsec^2, on the CPU
DirtyProducts dirty_products(const GriddedDataset& dataset, const Tensor& sky);

/// The dirty image in Jy/arcsec^2 that `--start dirty` starts from, (nchan, npix, npix) float64.
Tensor dirty_start(const GriddedDataset& dataset);

}  // namespace mpol::cli
