#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ops/stack.h>

#include <mpol_cpp/train/steps/step.h>

#include "train/problems.h"

namespace mpol::testing {

/// A small problem on a device, with more terms than it has.
struct Placed {
  GriddedNet model;
  Objective objective;

  Placed(const SmallProblem& problem, torch::Device device, const std::vector<Term>& more = {},
         const std::vector<std::int64_t>& problems = {})
      : model(problem.model(problems)), objective(problem.objective(with(more))) {
    model->to(device);
    objective.likelihood().as_module().to(device);
  }
  Tensor base() const { return model->base().detach().cpu(); }

 private:
  static std::vector<Term> with(const std::vector<Term>& more) {
    std::vector<Term> all = {terms::tsv(1e-3), terms::edge_clamp(1e-3), terms::psd(1e-16, 0.05)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

/// What steps report, and the base pixels after each, on the CPU.
struct Path {
  Tensor losses, sums, bases;
};

/// @param leader  each step begins at the pixels where its own began. Without one the rounding of a step grows: total variation
/// has kinks, at which Adam turns one way or the other, and after a hundred steps of float64 pixels differ by 1e-4 of the largest
inline Path path_of(ImageModel& model, Step& step, double rate, int steps, const Path* leader = nullptr) {
  std::vector<Tensor> losses, sums, bases;
  for (int i = 0; i < steps; ++i) {
    if (leader != nullptr && i > 0) {
      const torch::NoGradGuard no_grad;
      model.base().copy_(leader->bases[i - 1]);
    }
    const auto report = step.take(rate * (i < steps / 2 ? 1 : 0.5));
    losses.push_back(report.losses.cpu());
    sums.push_back(report.parameters_sum.cpu());
    bases.push_back(model.base().detach().cpu().clone());
  }
  return {at::stack(losses), at::stack(sums), at::stack(bases)};
}

}  // namespace mpol::testing
