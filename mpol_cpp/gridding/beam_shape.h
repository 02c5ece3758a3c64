#pragma once

#include <optional>

#include <torch/types.h>

#include <mpol_cpp/images/beam.h>

namespace mpol {

using torch::Tensor;

/// What a dirty beam looks like.
struct BeamShape {
  /// Sum of the beam within its first null, arcsec^2: in each of 24 overlapping wedges about the true peak, pixels
  /// as far out as the nearest negative one do not count (MPoL's nulled beam, about its own centre).
  double area;
  /// Largest |beam| outside the first null; 0 when nothing is outside.
  double peak_sidelobe;
  /// Least-squares fit to the main lobe down to 0.35 of the peak; none where that lobe is no ellipse inside the image
  /// (a single baseline, say). Its position angle is in (-pi/2, pi/2].
  std::optional<Beam> gaussian;
};

/// Measures one dirty beam.
/// @param beam       (npix, npix) float64 sky orientation on the CPU, peak 1 at column npix/2 - 1, row npix/2
/// @param cell_size  arcsec
BeamShape measure_beam(const Tensor& beam, double cell_size);

}  // namespace mpol
