#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace mpol::testing
