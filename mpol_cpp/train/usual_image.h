#pragma once

#include <cstdint>
#include <optional>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/models/base_cube.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

using torch::Tensor;

/// Options of usual_image().
struct UsualImageOptions {
  /// Weights of the regularizers in units of the noise (lambda_unit); nothing: what suits the data (usual_units), and the noise
  /// that the fit finds (FitNoise).
  TORCH_ARG(std::optional<double>, sparsity) = std::nullopt;
  /// The same for total variation.
  TORCH_ARG(std::optional<double>, tv) = std::nullopt;
  /// The same for total variation of slopes.
  TORCH_ARG(std::optional<double>, tv_slope) = std::nullopt;
  /// Whether pixels may be negative; nothing: those of Stokes Q, U, V and of cross hands (natural_sign).
  TORCH_ARG(std::optional<PixelSign>, sign) = std::nullopt;
  /// The tolerance of the fit, as TrainOptions::tolerance.
  TORCH_ARG(double, tolerance) = 1e-3;
  /// Epochs after which the fit ends though it has not settled.
  TORCH_ARG(std::int64_t, most_epochs) = 20000;
  /// Precision of the fit; the image is float64 all the same.
  TORCH_ARG(torch::Dtype, dtype) = torch::kFloat32;
};

/// A callback of a fit that only shows what the usual weights of a cube's channels should be: ends it after 32 epochs, if it has
/// not converged before. Up to most_usual_fits of them come before the one that converges.
CallbackAction end_look(const Progress& progress);

/// The image that `mpol image` makes of loose visibilities where nothing is said: exact likelihood, sparsity and total variation
/// of images and slopes in units of the noise, pixels behind the Hann convolution that are positive unless said otherwise, fitted
/// by POGM until it stands still; once more where the noise turns out to be another than the weights say. Channels of a cube have
/// weights of their own, by what each shows.
/// @param channels  which data channels feed which image channel
/// @return          (nchan, npix, npix) float64 on the CPU, Jy/arcsec^2, sky orientation
/// @throws DataError when baselines do not fit the grid; DivergedError
Tensor usual_image(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                   const UsualImageOptions& options = {});

}  // namespace mpol
