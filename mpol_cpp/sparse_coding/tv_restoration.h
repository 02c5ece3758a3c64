#pragma once

#include <memory>

#include <mpol_cpp/proximal/norms.h>
#include <mpol_cpp/solvers/admm.h>

namespace mpol {

/// Options of tv_denoiser() and tv_deconvolver().
struct TvRestorationOptions : AdmmOptions {
  /// Chooses rho = 2 lambda + 0.1 and a balance in every iteration.
  /// @throws ValueError unless lambda is finite and above 0
  explicit TvRestorationOptions(double lambda);

  double tv_weight;  ///< lambda
  /// What holds the restored image to the given one.
  enum class Fidelity {
    squared,                                   ///< |K x - s|^2 / 2: Gaussian noise
    absolute                                   ///< |K x - s|_1: outliers, such as salt and pepper
  } fidelity = Fidelity::squared;              ///< which of these
  Variation variation = Variation::isotropic;  ///< across_channels for images in color
  std::int64_t sweeps = 2;                     ///< tv_denoiser: Jacobi steps in the place of a linear solve, >= 1
};

/// Denoising by total variation,  min_x fidelity(x, s) + lambda TV(x), TV of ImageDifferences with free edges. The restored image
/// is the solver's solution().
/// @param image  s, (…, channels, rows, columns)
/// @throws ValueError for options out of range
/// Source: Rudin, Osher & Fatemi 1992; Alliney 1992 (absolute); TVL2Denoise and TVL1Denoise of SPORCO (Wohlberg 2017).
std::unique_ptr<Admm> tv_denoiser(const Tensor& image, const TvRestorationOptions& options);

/// The same for an image that was blurred by a CircularConvolution with the kernel, (h, w), and TV with periodic edges.
/// @throws ShapeError for a kernel larger than the image
/// Source: TVL2Deconv and TVL1Deconv of SPORCO.
std::unique_ptr<Admm> tv_deconvolver(const Tensor& kernel, const Tensor& image, const TvRestorationOptions& options);

}  // namespace mpol
