#pragma once

#include <optional>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// An elliptical Gaussian beam as FITS headers describe it.
struct GaussianBeam {
  double bmaj;  ///< major axis, full width at half maximum, arcsec
  double bmin;  ///< minor axis, full width at half maximum, arcsec
  double bpa;   ///< position angle of the major axis, degrees East of North, in (-90, 90]
};

/// What a dirty beam looks like.
struct BeamShape {
  /// Sum of the beam within its first null, arcsec^2: in each of 24 overlapping wedges about the true peak, pixels
  /// as far out as the nearest negative one do not count (MPoL's nulled beam, about its own centre).
  double area;
  /// Largest |beam| outside the first null; 0 when nothing is outside.
  double peak_sidelobe;
  /// Least-squares fit to the main lobe down to 0.35 of the peak; none where that lobe is no ellipse inside the image
  /// (a single baseline, say).
  std::optional<GaussianBeam> gaussian;
};

/// Measures one dirty beam.
/// @param beam       (npix, npix) float64 sky orientation on the CPU, peak 1 at column npix/2 - 1, row npix/2
/// @param cell_size  arcsec
BeamShape measure_beam(const Tensor& beam, double cell_size);

}  // namespace mpol
