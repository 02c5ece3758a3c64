#pragma once

#include <optional>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/ops/proximal/proximal_kernels.h>

/// What solvers do to whole images (problems, nchan, npix, npix), contiguous, float32 or float64: on the CPU in one pass by our
/// kernels, whose sums have a fixed order, elsewhere by LibTorch. Without autograd.
namespace mpol::ops {

using torch::Tensor;

/// w' = y - slope gradient,  z' = w' + w_factor (w' - w) + y_factor (w' - y) + z_factor (z - y), written over w and z.
/// @param factors  of each image
void extrapolate(const Tensor& y, const Tensor& gradient, const std::vector<ExtrapolationFactors>& factors, Tensor& w, Tensor& z);

/// Each image times its factor, and its shift added to each pixel. @param images  of the CPU
void scale_and_shift(Tensor& images, const std::vector<double>& factors, const std::vector<double>& shifts);

/// As Tensor::copy_, of images of one shape: on the CPU by our threads, since those of LibTorch look out for work for some time
/// after each of theirs, on the cores that ours need.
void copy_images(const Tensor& from, Tensor& to);

/// The sums of each image.
std::vector<PointSums> compare_points(const Tensor& y, const Tensor& gradient, const Tensor& next, const Tensor& next_gradient);

/// The sum of all pixels in float64. @param images  of the CPU
double sum_of_pixels(const Tensor& images);

/// The epsilons of the lengths that are summed, those of losses::tv_image and of losses::tv_slope; none: not summed.
struct LengthEpsilons {
  std::optional<double> variation, curvature;
};
/// The sum of an image's pixels, its total variation, and that of its slopes.
struct PixelSums {
  double pixels = 0, variation = 0, curvature = 0;
  PixelSums& operator+=(const PixelSums& other) {
    pixels += other.pixels;
    variation += other.variation;
    curvature += other.curvature;
    return *this;
  }
};
std::vector<PixelSums> pixel_sums(const Tensor& images, const LengthEpsilons& epsilons);

}  // namespace mpol::ops
