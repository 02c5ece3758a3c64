#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Whether an image is at a place as sharp as it can be: the brightest of the nine pixels there exceeds those three away from it,
/// which the Hann kernel does not reach, ten times. Where a residual is brightest at such a place, the source is sharper still
/// (unresolved, and bright), and no image of this grid follows it to the longest baselines.
/// @param image  (npix, npix) float64 on the CPU
bool is_at_its_sharpest(const Tensor& image, std::int64_t row, std::int64_t column);

/// Where a fit falls short of a source for its sharpness.
struct MissedForSharpness {
  std::int64_t channel = 0, row = 0, column = 0;
  double residual = 0;  ///< there, over its noise
};

/// The place with the largest residual of those where the image is at its sharpest; nothing where none is above a threshold.
/// @param residual  data less model over its noise, (nchan, npix, npix) float64 on the CPU
/// @param sky       the image, the same; of sources of either sign both are turned where sources are negative
/// @param refused   what is passed over; empty: nothing is
std::optional<MissedForSharpness> missed_for_sharpness(const Tensor& residual, const Tensor& sky, double threshold,
                                                       const std::function<bool(const MissedForSharpness&)>& refused = {});

}  // namespace mpol
