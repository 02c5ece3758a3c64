#pragma once

#include <cstdint>
#include <memory>

#include <mpol_cpp/ops/toeplitz/toeplitz_kernels.h>

namespace mpol::ops {

/// Products of real images with symmetric Toeplitz matrices, y[n] = sum_m t[n - m] x[m], on the CPU: one real transform
/// pair of twice the size whose empty half is never transformed. Sums have a fixed order. Several threads may call, one
/// at a time is served.
template <typename T>
class ToeplitzConvolution {
 public:
  explicit ToeplitzConvolution(std::int64_t npix);
  ~ToeplitzConvolution();
  ToeplitzConvolution(const ToeplitzConvolution&) = delete;
  ToeplitzConvolution& operator=(const ToeplitzConvolution&) = delete;

  using Sums = QuadraticSums;

  /// gradient = linear + 2 T D with D = x - anchor, and its sums.
  /// @param kernel  (npix + 1, 2 npix): transform of t divided by 4 npix^2, for each column of the half plane
  /// @param x, anchor, linear, gradient  (npix, npix), contiguous; a null anchor is zero
  Sums quadratic(const T* kernel, const T* x, const T* anchor, const T* linear, T* gradient) const;

  /// y = T x.
  void apply(const T* kernel, const T* x, T* y) const;

 private:
  class Passes;
  std::unique_ptr<Passes> passes_;
};

}  // namespace mpol::ops
