#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Bins of templates: edges in radius, and even bins of the whole turn from azimuth 0.
struct PolarBins {
  std::vector<double> radii;  ///< arcsec, from 0 on, increasing, at least two
  std::int64_t nphi = 0;      ///< of azimuth
};

// Templates of brightness 1 at their brightest, (nr, nphi) float64 on the CPU, in the plane of the disc. Lengths in arcsec,
// angles in radian; widths are full widths at half maximum. All throw ValueError for bins or lengths that cannot be.

/// A uniform disc; a bin on its edge has the part of its area that lies within.
Tensor disc_template(const PolarBins& bins, double radius);

/// A ring with a Gaussian profile: exp(-4 ln 2 (r - radius)^2 / width^2).
Tensor ring_template(const PolarBins& bins, double radius, double width);

/// The part of a ring within `opening`, its middle at azimuth 0; a bin at its end has the part that lies within.
Tensor arc_template(const PolarBins& bins, double radius, double width, double opening);

/// Where the arms of a spiral lie.
struct SpiralShape {
  double radius = 0;      ///< at which the first arm has azimuth 0
  double width = 0;       ///< across the arms
  double pitch = 0;       ///< angle between arms and circles, to either side of 0: above it, arms go outwards as azimuth grows
  std::int64_t arms = 1;  ///< evenly in azimuth
};

/// Logarithmic spirals, r = radius exp(tan(pitch) phi), m arms evenly in azimuth, each with a Gaussian profile across it (in the
/// tangent's approximation: the distance is r |phi - phi_arm| |sin(pitch)| to the nearest arm).
Tensor spiral_template(const PolarBins& bins, const SpiralShape& shape);

}  // namespace mpol
