#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/analysis/field/wide_image.h>
#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/gridding/peak_signal.h>
#include <mpol_cpp/likelihoods/noise_model.h>
#include <mpol_cpp/visibilities/data_outline.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol::cli {

/// The numbers of a finished fit by which it is judged: see findings().
struct FitFacts {
  double cell_size = 0;  ///< arcsec
  std::int64_t npix = 0;
  SkyOffset center;          ///< of the image from the phase centre; other places are from the image's middle
  double finest_fringe = 0;  ///< 1/q_max, arcsec; 0: all baselines have length zero

  double peak = 0;           ///< of the image's means over a fringe, Jy/arcsec^2
  double edge_peak = 0;      ///< the largest of these in the outermost three percent of the field's width
  double flux = 0;           ///< of the image, Jy, mean over channels
  double floor = 0;          ///< what nine of ten pixels of the channel with the most flux exceed, Jy/arcsec^2
  double floor_flux = 0;     ///< that floor over the whole field, Jy
  double flux_of_floor = 0;  ///< flux of that channel, Jy

  std::optional<BeamSummary> primary_beam;  ///< of the antennas, where it is known
  double flat_radius =
      0;  ///< arcsec from the phase centre at which pi theta^2 q_max is 1 radian: what w terms may turn phases by
  double flux_beyond_flat = 0;  ///< share of the flux that is further away

  DirtyPeaks data;                       ///< of the dirty image
  double dirty_noise = 0;                ///< that the weights promise it, Jy/beam, of the channel with the most
  PixelSign sign = PixelSign::positive;  ///< of the image's pixels
  bool may_be_negative = false;          ///< polarised brightness, of either sign

  double residual_peak = 0;                      ///< of the residual image over the noise that the weights promise
  double residual_east = 0, residual_north = 0;  ///< where it is, arcsec
  std::int64_t residual_channel = 0, channels = 1;
  double sharp_residual = 0, sharp_east = 0, sharp_north = 0;  ///< sigma, largest where the image is at its sharpest, and where

  WidePeak outside, inside;  ///< brightest places of the residual beyond the field, and in it, on a map of wide_width
  double wide_noise = 0;     ///< of that map, Jy/beam
  double wide_width = 0;     ///< arcsec

  ResidualStatistics residuals;        ///< data minus model in units of sigma
  std::vector<PartResiduals> parts;    ///< the same of each spectral window or file, where there are several
  double shared_noise = 1;             ///< how much more of their errors is in the image because they share them (FitNoise)
  bool cross_validated = false;        ///< LAMBDA were
  double share_below_error = 0;        ///< of the flux, where the image is no larger than its error (ErrorMaps)
  std::optional<SpectralSlope> slope;  ///< of the data's brightness beside the image, where that is one of several frequencies
  std::optional<LengthSlope> lengths;  ///< how the data exceed the model with the length of their baselines
  bool slope_of_channels = false;      ///< these are the data's channels, not their windows or files
  bool of_cells = false;               ///< these are of cell averages, which an image follows more closely than samples
  double flux_seen = 1;                ///< largest amplitude of the model in a ring of baselines, over its flux
  double shortest = 0;                 ///< mean length of the shortest baselines, wavelengths

  NoiseModel::Kind noise = NoiseModel::Kind::gaussian;  ///< that the fit took for the data's
  bool settled = true;                ///< the fit is at its end; nothing is said of how one fits that is still moving
  bool weights_were_doubted = false;  ///< before the fit, by the scatter in uv cells
};

/// A fit that is to be judged.
struct FinishedFit {
  const GridCoords& coords;
  const DataOutline& data;
  const UvSummary& uv;
  Imaging imaging;    ///< of which its dirty images are made
  const Tensor& sky;  ///< (nchan, npix, npix) float64 on the CPU, Jy/arcsec^2
  const DirtyProducts& dirty;
  PixelSign sign;  ///< of its pixels
};

/// What image and residual say, without what the data (data) and the fit itself say (settled, noise, …).
FitFacts measure_fit(const FinishedFit& fit);

}  // namespace mpol::cli
