#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

using torch::Tensor;

/// Kinds of skies that methods are compared on. All structure scales with the width of the field.
enum class Scene {
  blobs,   ///< ten elliptical Gaussians, 2 to 10 % of the field wide, fluxes over a factor of ten
  nebula,  ///< log-normal turbulence (amplitudes fall as k^-1.6) that fills the middle of the field
  galaxy   ///< inclined exponential disc with a bulge, two clumpy spiral arms and turbulence
};

/// Names of all scenes, as the command line has them.
std::vector<std::string> scene_names();
/// @throws ValueError for a name that is none, with the names that there are
Scene scene_by_name(const std::string& name);

/// A sky of a kind, drawn at random.
/// @param flux  of the whole image, Jy, positive
/// @param seed  of the draw: the same seed gives the same sky
/// @return      (npix, npix) float64, sky orientation, Jy/arcsec^2, nowhere negative
/// @throws ValueError for a flux that is not positive
Tensor render(Scene scene, const GridCoords& coords, double flux, std::uint64_t seed);

}  // namespace mpol
