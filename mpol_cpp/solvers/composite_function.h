#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// A convex function F = f + g of images (problems, nchan, npix, npix), a sum over problems that are minimized apart, with a
/// quadratic f whose gradient is known and a g whose proximal map is.
class CompositeFunction {
 public:
  virtual ~CompositeFunction() = default;

  /// An upper estimate of the largest eigenvalue of f's second derivative, > 0, in each image: f curves no more than their
  /// diagonal. (problems nchan)
  virtual std::vector<double> curvatures() = 0;
  /// Whether images of a problem mix in f: then its curvature shows in all of them together.
  virtual bool mixes_images() const { return false; }
  /// f's gradient, and g of each problem.
  /// @param images    that g allows, contiguous
  /// @param gradient  like them; overwritten
  virtual std::vector<double> evaluate(const Tensor& images, Tensor& gradient) = 0;
  /// argmin_x sum_i |x_i - q_i|^2 / (2 step_i) + g(x) over the images i of each problem.
  /// @param steps   of each image
  /// @param passes  how much work each problem's map is worth, where it is found by iterations
  /// @param x       like q, another tensor; overwritten
  virtual void proximal(const Tensor& q, const std::vector<double>& steps, const std::vector<std::int64_t>& passes,
                        Tensor& x) = 0;
};

}  // namespace mpol
