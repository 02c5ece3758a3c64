#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/trainer.h>

#include "random.h"

namespace mpol::testing {

/// Random visibilities in about a third of the cells of a small grid, with weights that a model can fit.
inline GriddedDataset random_dataset(const GridCoords& coords, std::int64_t nchan, std::uint64_t seed) {
  const auto cells = (uniform({nchan * coords.npix() * coords.npix()}, torch::kFloat64, seed) < 0.3).nonzero().squeeze(1);
  return GriddedDataset(coords, nchan, cells, normal({cells.size(0)}, torch::kComplexDouble, seed + 1) * 0.1,
                        uniform({cells.size(0)}, torch::kFloat64, seed + 2) * 100 + 1);
}

/// Random loose visibilities on baselines of the grid, with weights that a model can fit.
inline Visibilities random_visibilities(const GridCoords& coords, std::int64_t nchan, std::uint64_t seed) {
  constexpr std::int64_t nvis = 800;
  const double longest = 0.9 * (static_cast<double>(coords.npix()) / 2 - 0.5) * coords.du();
  const auto spread = [&](std::uint64_t s) { return (2 * uniform({nchan, nvis}, torch::kFloat64, s) - 1) * longest; };
  return {Baselines::in_lambda(spread(seed), spread(seed + 1)), normal({nchan, nvis}, torch::kComplexDouble, seed + 2) * 0.1,
          uniform({nchan, nvis}, torch::kFloat64, seed + 3) * 10 + 1};
}

/// The likelihood of that name for random data.
inline std::shared_ptr<Likelihood> random_likelihood(const std::string& name, const GridCoords& coords, std::int64_t nchan,
                                                     torch::Dtype dtype) {
  if (name == "exact") return ExactLikelihood(coords, random_visibilities(coords, nchan, 7), ChannelMap::cube(nchan)).ptr();
  if (name == "loose") return LooseLikelihood(coords, random_visibilities(coords, nchan, 7), ChannelMap::cube(nchan)).ptr();
  auto likelihood = GriddedLikelihood(random_dataset(coords, nchan, 7));
  likelihood->to(dtype);
  return likelihood.ptr();
}

/// A training problem of a fraction of a millisecond per epoch: each call makes model and objective anew, alike.
struct SmallProblem {
  GridCoords coords{0.05, 12};
  std::int64_t nchan = 2;
  torch::Dtype dtype = torch::kFloat64;
  std::string likelihood = "gridded";

  GriddedNet model(const std::vector<std::int64_t>& problems = {}) const {
    auto shape = problems;
    for (const auto extent : {nchan, coords.npix(), coords.npix()}) shape.push_back(extent);
    return model_of(normal(shape, torch::kFloat64, 3));
  }
  GriddedNet model_of(const Tensor& base) const { return GriddedNet(GriddedNetOptions(coords).base_cube(base).dtype(dtype)); }

  Objective objective(std::vector<Term> more_terms = {}) const {
    std::vector<Term> all = {terms::sparsity(1e-3), terms::tv_image(2e-3), terms::tv_channel(1e-3)};
    for (auto& term : more_terms) all.push_back(std::move(term));
    return Objective(random_likelihood(likelihood, coords, nchan, dtype), std::move(all));
  }
};

/// Bit for bit the same rows.
inline bool same_history(const LossHistory& a, const LossHistory& b) {
  if (a.size() != b.size() || (!a.empty() && a.row_values() != b.row_values())) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::equal(a.row(i), a.row(i) + a.row_values(), b.row(i))) return false;
  }
  return true;
}

}  // namespace mpol::testing
