#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/smooth_function.h>

#include "../compare.h"
#include "../train/problems.h"

/// A small observation whose optimum is neither empty nor the data's, and models and objectives of it.
namespace mpol::testing {

inline const GridCoords small_grid(0.05, 24);
inline constexpr std::int64_t channels = 2;

inline GriddedNet positive_model(const Tensor& base, const Tensor& mask = {}, Smoothing smoothing = Smoothing::hann) {
  auto options = GriddedNetOptions(small_grid).base_cube(base).dtype(base.scalar_type());
  return GriddedNet(options.pixel_mapping(nonnegative_mapping(mask)), smoothing);
}

inline GriddedNet positive_model(const Tensor& base, Smoothing smoothing) { return positive_model(base, {}, smoothing); }

inline Tensor base_image(torch::Dtype dtype, std::uint64_t seed, const std::vector<std::int64_t>& problems = {}) {
  auto shape = problems;
  for (const auto extent : {channels, small_grid.npix(), small_grid.npix()}) shape.push_back(extent);
  return (uniform(shape, torch::kFloat64, seed) * 2).to(dtype);
}

/// A source of 1 Jy in each channel, seen with noise: the optimum is neither empty nor the data's.
inline Visibilities source_with_noise() {
  auto data = random_visibilities(small_grid, channels, 7);
  return {data.baselines(), data.data() * 0.3 + 1, data.weights()};
}

inline std::shared_ptr<Likelihood> likelihood_of(const std::string& name, torch::Dtype dtype) {
  if (name == "exact") return ExactLikelihood(small_grid, source_with_noise(), ChannelMap::cube(channels)).ptr();
  return random_likelihood(name, small_grid, channels, dtype);
}

inline std::vector<Term> every_convex_term() {
  return {terms::sparsity(0.02), terms::tv_image(0.01), terms::tsv(1e-3), terms::edge_clamp(1e-2), terms::psd(1e-4, 0.1)};
}

inline Objective sparse(torch::Dtype dtype, double sparsity = 1e-3, double tv = 5e-4) {
  return Objective(likelihood_of("exact", dtype), {terms::sparsity(sparsity), terms::tv_image(tv)});
}

/// f of a ConvexObjective.
class SmoothPart : public SmoothFunction {
 public:
  explicit SmoothPart(ConvexObjective& function) : function_(function) {}
  Tensor value(const Tensor& x) override {
    Tensor gradient;
    return value_and_gradient(x, gradient);
  }
  Tensor value_and_gradient(const Tensor& x, Tensor& gradient) override {
    gradient = at::empty_like(x);
    const auto simple = function_.evaluate(x, gradient);
    return at::tensor({function_.losses()[0] - simple[0]}, torch::kFloat64);
  }
  Tensor curvatures(const Tensor&) override { return at::tensor(function_.curvatures(), torch::kFloat64); }

 private:
  ConvexObjective& function_;
};

}  // namespace mpol::testing
