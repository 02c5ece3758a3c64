#include <mpol_cpp/crossval/white_noise_data.h>

#include <cmath>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/simulation/thermal_noise.h>

namespace mpol {
namespace {

Visibilities perturbed(const Visibilities& visibilities, const WhiteNoiseOptions& options) {
  const auto& weights = visibilities.weights();
  const auto deviations = weights.to(torch::kCPU, torch::kFloat64).rsqrt() * options.perturbation();
  const auto noise = standard_complex_noise(weights.numel(), options.seed()).view(weights.sizes()) * deviations;
  const auto data = visibilities.data().to(torch::kCPU, torch::kComplexDouble) + noise;
  Visibilities moved(visibilities.baselines(), data, weights);
  if (visibilities.frequencies().defined()) moved.set_frequencies(visibilities.frequencies());
  return moved;
}

}  // namespace

std::vector<FoldData> white_noise_data(const GridCoords& coords, const Visibilities& visibilities, const LikelihoodMaker& make,
                                       const WhiteNoiseOptions& options) {
  if (!(options.perturbation() > 0) || !std::isfinite(options.perturbation()))
    throw ValueError(fmt::format("a perturbation of {} standard deviations: it must be above 0", options.perturbation()));
  const auto averages = [&](const Visibilities& samples) {
    return DataAverager(coords, samples, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  };
  const auto moved = perturbed(visibilities, options);
  FoldData own{.train = {}, .test = {}, .train_cells = averages(visibilities), .test_cells = {nullptr}, .perturbation = 0};
  own.test_cells = own.train_cells;
  own.train = own.test = make(visibilities, own.train_cells);
  FoldData other{.train = {},
                 .test = own.test,
                 .train_cells = averages(moved),
                 .test_cells = own.test_cells,
                 .perturbation = options.perturbation()};
  other.train = make(moved, other.train_cells);
  return {std::move(own), std::move(other)};
}

std::vector<FoldData> exact_white_noise_data(const GridCoords& coords, const Visibilities& visibilities,
                                             const WhiteNoiseOptions& options) {
  const auto channels = ChannelMap::cube(visibilities.nchan());
  return white_noise_data(
      coords, visibilities,
      [&](const Visibilities& samples, const GriddedDataset&) { return ExactLikelihood(coords, samples, channels).ptr(); },
      options);
}

}  // namespace mpol
