#pragma once

#include <ATen/ops/sum.h>
#include <torch/types.h>

/// What regularizers do to cubes.
namespace mpol::losses::detail {

using torch::Tensor;

/// Sum over the last three dimensions in float64: rows in the tensor's own precision (ATen adds them in cascades, with
/// an error that does not grow with the row's length), the row sums in float64.
inline Tensor sum_cube(const Tensor& cube) { return cube.sum({-1}).to(torch::kFloat64).sum({-2, -1}); }

/// @throws ShapeError unless it is (…, nchan, npix, npix) with at least so many pixels a side
void check_sky_cube(const Tensor& cube, std::int64_t smallest);

/// @throws ShapeError unless it is complex, (…, nchan, npix, npix)
void check_visibility_cube(const Tensor& cube);

/// @throws ValueError unless it is a normal number above 0 of the dtype: where it is 0, or has few digits, the gradient of a
/// flat image is none
void check_epsilon(double epsilon, torch::Dtype dtype);

/// The differences of each pixel to the next row and the next column, where it has both.
struct ForwardDifferences {
  Tensor along_m, along_l;  // (…, nchan, npix - 1, npix - 1)
};
ForwardDifferences forward_differences(const Tensor& cube);

}  // namespace mpol::losses::detail
