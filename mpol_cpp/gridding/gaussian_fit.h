#pragma once

#include <optional>

#include <torch/types.h>

#include <mpol_cpp/images/beam.h>

namespace mpol::gridding {

/// Least-squares fit of exp(-(a x^2 + b x y + c y^2)) to the main lobe of a beam: the pixels at 0.35 or more that
/// connect to the peak, and the positive ones beside the peak. Gauss-Newton with damping, from a fit to the logarithm.
/// @param beam  as in measure_beam, contiguous
/// @return a beam with its position angle in (-pi/2, pi/2]; nothing when the lobe reaches the border, or has no two finite axes
std::optional<Beam> fit_main_lobe(const Tensor& beam, double cell_size);

}  // namespace mpol::gridding
