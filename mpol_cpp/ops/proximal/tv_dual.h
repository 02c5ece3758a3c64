#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/ops/proximal/dual_images.h>
#include <mpol_cpp/ops/proximal/dual_walk.h>

namespace mpol::ops {

using torch::Tensor;

/// The proximal map of total variation and of pixels' signs on the CPU (solvers/tv_proximal.h has the equations): dual steps of
/// one pass over the image each, whose rows stay in the first cache from the dual image read to the dual image written. Sums are
/// those of rows in a fixed order: the same bits for any number of threads.
template <typename T>
class TvDual {
 public:
  /// @param hann  whether the variation is that of the images convolved with the Hann kernel
  TvDual(std::int64_t problems, std::int64_t nchan, std::int64_t npix, bool hann);
  TvDual(const TvDual&) = delete;
  TvDual& operator=(const TvDual&) = delete;

  /// @param q        (problems, nchan, npix, npix), contiguous
  /// @param mask     1 or 0, like q, or null
  /// @param weights     of each image, > 0 or 0
  /// @param thresholds  of each image, by which pixels of either sign go towards 0; empty: none is negative
  /// @param passes      of each problem
  /// @param x           like q; overwritten
  void apply(const T* q, const T* mask, const std::vector<double>& weights, const std::vector<double>& thresholds,
             const std::vector<std::int64_t>& passes, T* x);

  /// The dual image, (2, problems, nchan, npix, npix): rows, columns.
  Tensor dual() const { return duals_.now(); }
  void set_dual(const Tensor& dual) { duals_.set_now(dual); }

 private:
  std::int64_t images() const { return problems_ * nchan_; }

  std::int64_t problems_, nchan_;
  WalkFrame<T> frame_;
  DualImages<T> duals_;
  std::vector<WalkScratch<T>> scratch_;  // of each worker
};

}  // namespace mpol::ops
