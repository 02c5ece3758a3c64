#include <mpol_cpp/simulation/fake_data.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/simulation/direct_visibilities.h>
#include <mpol_cpp/simulation/thermal_noise.h>

namespace mpol {

Visibilities add_noise(const Visibilities& visibilities, std::uint64_t seed) {
  const auto data = visibilities.data().to(torch::kCPU);
  const auto noise = standard_complex_noise(data.numel(), seed).view(data.sizes());
  const auto noisy = data.to(torch::kComplexDouble) + noise / visibilities.weights().to(torch::kCPU, torch::kFloat64).sqrt();
  Visibilities result(visibilities.baselines(), noisy.to(data.scalar_type()), visibilities.weights());
  if (visibilities.frequencies().defined()) result.set_frequencies(visibilities.frequencies());
  result.set_observation(visibilities.observation());
  return result;
}

Visibilities fake_data(const Tensor& sky_cube, const GridCoords& coords, const Baselines& baselines, const Tensor& weights,
                       std::uint64_t seed) {
  if (weights.dim() != 2) {
    throw ShapeError(fmt::format("the weights have shape {}; they must be (nchan, nvis)", weights.sizes().vec()));
  }
  const auto model = direct_visibilities(sky_cube, coords, baselines, weights.size(0));
  const auto precision = c10::toComplexType(weights.scalar_type());
  return add_noise(Visibilities(baselines, model.to(precision), weights), seed);
}

}  // namespace mpol
