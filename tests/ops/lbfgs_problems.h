#pragma once

// Functions for L-BFGS to go down on, and the way that LibTorch's goes.
#include <functional>
#include <vector>

#include <torch/optim/lbfgs.h>

#include "random.h"

namespace mpol::testing {

using Valued = std::function<Tensor(const Tensor&)>;  // differentiable, (n) to ()

/// A narrow bent valley in many dimensions: searches along it grow, shrink and fail.
inline Tensor valley(const Tensor& x) {
  const auto n = x.size(0), even = n / 2;
  const auto a = x.narrow(0, 0, even), b = x.narrow(0, even, even);
  return (100 * (b - a.square()).square() + (1 - a).square()).sum() + x.narrow(0, 2 * even, n - 2 * even).square().sum();
}
/// Flat far out, steep within.
inline Tensor well(const Tensor& x) { return (x.square() / (1 + x.square())).sum() + 1e-3 * (x - 0.3).square().sum(); }
inline Tensor ill_conditioned(const Tensor& x) {
  return (at::logspace(0, 5, x.size(0), 10.0, x.options()) * (x - 0.5).square()).sum();
}

struct Way {
  std::vector<double> values;  // at the beginning of each step
  Tensor position;
};

struct LibTorchRun : Way {
  int evaluations = 0;
};

inline LibTorchRun by_libtorch(const Valued& function, const Tensor& start, double rate, int count) {
  auto position = start.clone().set_requires_grad(true);
  torch::optim::LBFGS optimizer(
      {position}, torch::optim::LBFGSOptions(rate).line_search_fn("strong_wolfe").tolerance_grad(0).tolerance_change(0));
  LibTorchRun reference;
  for (int i = 0; i < count; ++i) {
    const auto value = optimizer.step([&] {
      optimizer.zero_grad();
      auto present = function(position);
      present.backward();
      ++reference.evaluations;
      return present;
    });
    reference.values.push_back(value.item<double>());
  }
  reference.position = position.detach().clone();
  return reference;
}

inline Tensor lbfgs_start(std::int64_t elements, torch::Dtype dtype = torch::kFloat64) {
  return normal({elements}, torch::kFloat64, 21).to(dtype);
}

}  // namespace mpol::testing
