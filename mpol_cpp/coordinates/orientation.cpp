#include <mpol_cpp/coordinates/orientation.h>

#include <ATen/ops/flip.h>
#include <ATen/ops/roll.h>

namespace mpol {
namespace {

/// fftshift over the last two dimensions; npix is even, so it is its own inverse.
Tensor shift(const Tensor& cube) { return at::roll(cube, {cube.size(-2) / 2, cube.size(-1) / 2}, {-2, -1}); }

}  // namespace

Tensor sky_to_packed(const Tensor& sky) { return shift(at::flip(sky, {-1})); }
Tensor packed_to_sky(const Tensor& packed) { return at::flip(shift(packed), {-1}); }
Tensor ground_to_packed(const Tensor& ground) { return shift(ground); }
Tensor packed_to_ground(const Tensor& packed) { return shift(packed); }

}  // namespace mpol
