#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::detail {

/// A parameter and what Adam or gradient descent keep of it, in tensors that stay where they are; undefined where the
/// optimiser has none.
struct Moments {
  NamedParameter parameter;
  Tensor first, second;
};

/// Their saved form, that of optimizer_state: LibTorch's optimisers read it, and the other way round.
/// @param steps  taken so far; before the first there is nothing to save
NamedTensors save_moments(OptimizerKind kind, const std::vector<Moments>& moments, std::int64_t steps);

/// Takes them up, from any device. @return the steps taken
/// @throws FileError when names or shapes do not match the parameters
std::int64_t load_moments(OptimizerKind kind, const std::vector<Moments>& moments, NamedTensors saved);

}  // namespace mpol::detail
