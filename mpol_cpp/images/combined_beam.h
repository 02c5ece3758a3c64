#pragma once

#include <optional>

#include <mpol_cpp/images/beam.h>

namespace mpol {

// Gaussians convolved with each other are Gaussians whose covariance matrices add.

/// The beam of an image of beam `a` that is convolved with `b`: round beams of 0.4" and 0.3" make one of 0.5".
Beam convolved_beam(const Beam& a, const Beam& b);

/// The beam to convolve an image of beam `from` with so that its beam becomes `to`; none unless `to` is wider than `from` in
/// every direction.
std::optional<Beam> beam_between(const Beam& from, const Beam& to);

}  // namespace mpol
