#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// What FilterBank does, on the CPU, for square images of an even size and channels that have maps of their own: D, D* and
///
///   argmin_x |D x - s|^2 / 2 + delta |x - v|^2 / 2
///
/// by ops::LineTransforms: rows to panels of a few columns, the columns of a panel for all filters while they are in the cache,
/// and back. What is summed over filters is summed in their order, whatever the number of threads.
class PanelFit {
 public:
  /// @param filters  (M, h, w), float32 or float64
  /// @param npix     even, at least h and w
  PanelFit(const Tensor& filters, std::int64_t npix);
  ~PanelFit();
  PanelFit(const PanelFit&) = delete;
  PanelFit& operator=(const PanelFit&) = delete;

  static bool suits(const Tensor& filters, std::int64_t rows, std::int64_t columns);

  /// @param v       (…, M, npix, npix)
  /// @param images  s, (…, npix, npix)
  /// @param deltas  > 0, of each image
  /// @param product if given, becomes D x, like images
  /// @return        x, like v
  Tensor fit(const Tensor& v, const Tensor& images, const std::vector<double>& deltas, Tensor* product = nullptr);
  /// FilterBank::apply, (…, M, npix, npix) to (…, npix, npix).
  Tensor apply(const Tensor& x);
  /// FilterBank::adjoint, (…, npix, npix) to (…, M, npix, npix).
  Tensor adjoint(const Tensor& images);

 private:
  template <typename Function>
  void run(const Function& function);
  template <typename T>
  class Passes;
  std::int64_t filters_;
  std::unique_ptr<Passes<float>> single_;  // one of them
  std::unique_ptr<Passes<double>> double_;
};

}  // namespace mpol
