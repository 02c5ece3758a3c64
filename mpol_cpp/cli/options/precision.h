#pragma once

#include <array>

#include <torch/types.h>

#include <mpol_cpp/cli/program/choices.h>

namespace mpol::cli {

/// The choices of --dtype.
inline constexpr auto dtype_choices =
    std::to_array<NamedChoice<torch::Dtype>>({{"float32", torch::kFloat32}, {"float64", torch::kFloat64}});

}  // namespace mpol::cli
