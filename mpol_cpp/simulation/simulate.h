#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/primary_beam.h>
#include <mpol_cpp/simulation/array_configuration.h>
#include <mpol_cpp/simulation/direct_visibilities.h>
#include <mpol_cpp/simulation/sky_model.h>
#include <mpol_cpp/simulation/thermal_noise.h>
#include <mpol_cpp/simulation/uv_tracks.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Whether a simulation adds thermal noise; the weights are those of the noise either way.
enum class SimulatedNoise {
  thermal,  ///< of the receivers and the sky
  none      ///< the data are those of the sky
};

/// An observation to be simulated.
struct SimulationOptions {
  TORCH_ARG(TrackOptions, tracks) = {};                              ///< when it is observed, and from where
  TORCH_ARG(ReceiverOptions, receiver) = {};                         ///< what decides on the noise
  TORCH_ARG(std::vector<double>, frequencies) = {230e9};             ///< Hz, one per channel
  TORCH_ARG(std::optional<double>, right_ascension) = std::nullopt;  ///< radian, only written down
  TORCH_ARG(SimulatedNoise, noise) = SimulatedNoise::thermal;        ///< whether the data have it
  /// It dims the sky, of antennas that point at the phase centre. Without it they see all directions alike, and a telescope
  /// whose beam is known (PrimaryBeam::of_telescope) is named "… without its primary beam".
  TORCH_ARG(std::optional<PrimaryBeam>, primary_beam) = std::nullopt;
  TORCH_ARG(std::uint64_t, seed) = 0;                ///< of the noise
  TORCH_ARG(torch::Dtype, dtype) = torch::kFloat32;  ///< of u, v, weights and the parts of the data
};

/// Observes a disc: visibilities from its own Fourier transform (samples fine enough for 1e-12 of the flux, whatever
/// grid it will be imaged on) at u, v as stored in `dtype`, plus noise.
/// @return (nchan, nvis) visibilities; baselines in metres with the frequencies; weights 1/sigma^2; phase centre and
///         telescope in its observation
/// @throws ValueError for options out of range
Visibilities simulate_observation(const ArrayConfiguration& array, const RingedDisc& disc, const SimulationOptions& options = {});

/// Observes an image, (nchan, npix, npix), or (1, npix, npix) or (npix, npix) for all channels alike, Jy/arcsec^2, sky
/// orientation. The pixels are squares of constant brightness.
/// @throws ShapeError when image, grid and channels do not agree; DataError when a pixel is not finite
Visibilities simulate_observation(const ArrayConfiguration& array, const Tensor& sky_image, const GridCoords& coords,
                                  const SimulationOptions& options = {});

}  // namespace mpol
