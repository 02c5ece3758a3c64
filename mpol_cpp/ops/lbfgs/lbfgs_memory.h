#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// What L-BFGS goes on from in its next step.
struct LbfgsMemory {
  std::int64_t iterations = 0, evaluations = 0;
  double scale = 1;                    ///< of the inverse Hessian that the pairs correct
  double step = 0;                     ///< the last one along the direction
  double previous_value = 0;           ///< where the last direction began
  Tensor direction, gradient;          ///< (elements): the last one, and the gradient where it began
  std::vector<Tensor> moves, changes;  ///< (elements) each, from the oldest pair on: s, and y of the gradient
  std::vector<double> curvatures;      ///< s'y
};

}  // namespace mpol::ops
