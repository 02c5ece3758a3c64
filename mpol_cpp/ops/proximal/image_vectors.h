#pragma once

#include <vector>

#include <torch/types.h>

#include <mpol_cpp/ops/proximal/proximal_kernels.h>

/// What solvers do to whole images (problems, nchan, npix, npix), contiguous, float32 or float64: on the CPU in one pass by our
/// kernels, whose sums have a fixed order, elsewhere by LibTorch. Without autograd.
namespace mpol::ops {

using torch::Tensor;

/// w' = y - slope gradient,  z' = w' + of_w (w' - w) + of_y (w' - y) + of_z (z - y).
struct Extrapolated {
  Tensor w, z;
};
/// @param factors  of each image
Extrapolated extrapolate(const Tensor& y, const Tensor& gradient, const Tensor& w, const Tensor& z,
                         const std::vector<ExtrapolationFactors>& factors);

/// Of each image.
std::vector<PointSums> compare_points(const Tensor& y, const Tensor& gradient, const Tensor& next, const Tensor& next_gradient);

/// Total variation, as losses::tv_image, of each image.
std::vector<double> variations(const Tensor& images, double epsilon);

}  // namespace mpol::ops
