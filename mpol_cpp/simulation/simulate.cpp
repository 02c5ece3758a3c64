#include <mpol_cpp/simulation/simulate.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// The parts of an observation that do not depend on the sky.
struct Pointing {
  Baselines baselines;
  Tensor sigma;  // (nvis) float64, Jy
};

void check_frequencies(const std::vector<double>& frequencies) {
  if (frequencies.empty()) throw ValueError("no frequencies: give one per channel, in Hz");
  for (const double frequency : frequencies)
    if (!(frequency > 0) || !std::isfinite(frequency))
      throw ValueError(fmt::format("frequency {} Hz: it must be positive", frequency));
}

Pointing point(const ArrayConfiguration& array, const SimulationOptions& options) {
  check_frequencies(options.frequencies());
  if (options.dtype() != torch::kFloat32 && options.dtype() != torch::kFloat64)
    throw ValueError("dtype of a simulation: float32 or float64");
  const auto tracks = uv_tracks(array, options.tracks());
  const auto column = [&](std::int64_t i) { return tracks.uvw.select(1, i).contiguous().to(options.dtype()); };
  return {Baselines::in_metres(column(0), column(1), at::tensor(options.frequencies(), torch::kFloat64)),
          thermal_noise_sigma(tracks.elevation, array.diameter, options.tracks().integration_time(), options.receiver())};
}

/// The sky as the antennas see it. @param sky  (1 or nchan, npix, npix)
Tensor as_seen(const Tensor& sky, const GridCoords& grid, const SimulationOptions& options) {
  const auto nchan = options.frequencies().size();
  const bool fits = sky.dim() == 3 && sky.size(1) == grid.npix() && sky.size(2) == grid.npix() &&
                    (sky.size(0) == 1 || sky.size(0) == static_cast<std::int64_t>(nchan));
  if (!options.primary_beam() || !fits) return sky;  // what does not fit is refused when it is transformed
  std::vector<Tensor> beams;
  beams.reserve(nchan);
  for (const double frequency : options.frequencies()) beams.push_back(options.primary_beam()->power(grid, {}, frequency));
  return sky * at::stack(beams).to(sky.scalar_type());
}

/// Adds noise and weights to the visibilities of the sky.
Visibilities observe(const ArrayConfiguration& array, const Pointing& pointing, const Tensor& sky_visibilities,
                     const SimulationOptions& options) {
  const auto nchan = sky_visibilities.size(0), nvis = sky_visibilities.size(1);
  auto data = sky_visibilities;
  if (options.noise() == SimulatedNoise::thermal)
    data = data + pointing.sigma * standard_complex_noise(nchan * nvis, options.seed()).reshape({nchan, nvis});
  const auto weights = pointing.sigma.pow(-2).expand({nchan, nvis}).contiguous().to(options.dtype());
  const auto complex_dtype = options.dtype() == torch::kFloat64 ? torch::kComplexDouble : torch::kComplexFloat;
  Visibilities visibilities(pointing.baselines, data.to(complex_dtype), weights);
  visibilities.set_frequencies(at::tensor(options.frequencies(), torch::kFloat64));
  Observation observation;
  observation.right_ascension = options.right_ascension();
  observation.declination = options.tracks().declination();
  observation.object = "simulated";
  observation.telescope = array.name;
  if (!options.primary_beam() && PrimaryBeam::of_telescope(array.name)) observation.telescope += " without its primary beam";
  visibilities.set_observation(std::move(observation));
  return visibilities;
}

}  // namespace

Visibilities simulate_observation(const ArrayConfiguration& array, const RingedDisc& disc, const SimulationOptions& options) {
  const auto pointing = point(array, options);
  const auto longest = std::max(pointing.baselines.max_abs_u(), pointing.baselines.max_abs_v());
  const auto grid = sampling_grid(disc, longest);
  const auto sky = as_seen(render(disc, grid, options.frequencies(), /*oversample=*/1), grid, options);
  const auto nchan = static_cast<std::int64_t>(options.frequencies().size());
  return observe(array, pointing, direct_visibilities(sky, grid, pointing.baselines, nchan), options);
}

Visibilities simulate_observation(const ArrayConfiguration& array, const Tensor& sky_image, const GridCoords& coords,
                                  const SimulationOptions& options) {
  if (!at::isfinite(sky_image).all().item<bool>())
    throw DataError("the sky image has pixels that are not finite: replace them by 0");
  const auto pointing = point(array, options);
  const auto nchan = static_cast<std::int64_t>(options.frequencies().size());
  const auto cube = as_seen(sky_image.dim() == 2 ? sky_image.unsqueeze(0) : sky_image, coords, options);
  return observe(array, pointing, direct_visibilities(cube, coords, pointing.baselines, nchan, PixelShape::square), options);
}

}  // namespace mpol
