#pragma once

#include <mpol_cpp/proximal/linear_map.h>

namespace mpol {

/// (k * x)[i, j] = sum k[a, b] x[i - a, j - b] with periodic edges, by real transforms; the kernel's first value is in the
/// middle.
class CircularConvolution : public LinearMap {
 public:
  /// @param kernel  (h, w), or (…, h, w) broadcastable to the images; h <= rows, w <= columns
  /// @throws ShapeError for a kernel larger than the image
  CircularConvolution(const Tensor& kernel, std::int64_t rows, std::int64_t columns);
  Tensor apply(const Tensor& x) const override;
  Tensor adjoint(const Tensor& y) const override;
  /// The half plane of the kernel's transform.
  const Tensor& spectrum() const { return spectrum_; }

 private:
  Tensor spectrum_;
  std::int64_t rows_, columns_;
};

/// The half plane of D* D for the periodic differences D of ImageDifferences: 4 sin^2 along rows and columns, (rows, columns/2 +
/// 1).
Tensor squared_differences(std::int64_t rows, std::int64_t columns, const torch::TensorOptions& options);

}  // namespace mpol
