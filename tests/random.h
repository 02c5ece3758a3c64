#pragma once

#include <cstdint>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol::testing {

/// A generator with a fixed seed: every test case makes its own, so that tests do not depend on their order.
inline at::Generator generator(std::uint64_t seed) { return at::detail::createCPUGenerator(seed); }

/// Standard normal deviates; complex dtypes get independent real and imaginary parts of unit variance together.
inline Tensor normal(at::IntArrayRef shape, torch::Dtype dtype, std::uint64_t seed) {
  return at::randn(shape, generator(seed), at::TensorOptions(dtype));
}

/// Uniform deviates in [0, 1).
inline Tensor uniform(at::IntArrayRef shape, torch::Dtype dtype, std::uint64_t seed) {
  return at::rand(shape, generator(seed), at::TensorOptions(dtype));
}

/// A positive image of unit scale.
inline Tensor random_image(const GridCoords& coords, std::int64_t nchan, torch::Dtype dtype, std::uint64_t seed) {
  return uniform({nchan, coords.npix(), coords.npix()}, dtype, seed) + 0.1;
}

}  // namespace mpol::testing
