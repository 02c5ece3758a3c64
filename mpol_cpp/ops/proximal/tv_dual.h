#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/proximal/proximal_kernels.h>

namespace mpol::ops {

using torch::Tensor;

/// The proximal map of total variation and positivity on the CPU (solvers/tv_proximal.h has the equations): dual steps of one
/// pass over the image each, whose rows stay in the first cache from the dual image read to the dual image written. Pieces have
/// fixed boundaries and sums a fixed order: the same bits for any number of threads.
template <typename T>
class TvDual {
 public:
  /// @param hann  whether the variation is that of the images convolved with the Hann kernel
  TvDual(std::int64_t problems, std::int64_t nchan, std::int64_t npix, bool hann);
  ~TvDual();
  TvDual(const TvDual&) = delete;
  TvDual& operator=(const TvDual&) = delete;

  /// @param q        (problems, nchan, npix, npix), contiguous
  /// @param mask     1 or 0, like q, or null
  /// @param weights  of each image, > 0 or 0
  /// @param passes   of each problem
  /// @param x        like q; overwritten
  void apply(const T* q, const T* mask, const std::vector<double>& weights, const std::vector<std::int64_t>& passes, T* x);

  /// The dual image, (2, problems, nchan, npix, npix): rows, columns.
  Tensor dual() const;
  void set_dual(const Tensor& dual);

 private:
  struct Scratch;
  /// A worker's way through some rows of an image.
  class Walk;

  std::int64_t images() const { return problems_ * nchan_; }
  /// Dual image `which` of an image at a row.
  DualRow<T> dual_row(int which, std::int64_t image, std::int64_t row) const;

  std::int64_t problems_, nchan_, npix_;
  bool hann_;
  std::int64_t distance_, rows_per_block_, blocks_;
  ProximalKernels<T> kernels_;
  AlignedArray<T> duals_;                  // three of them: now, before, next, in an order that each problem has for itself
  AlignedArray<T> inside_, counted_;       // a row of 1 up to the last pixel, or up to the one before it, then of 0
  std::vector<std::array<int, 3>> order_;  // of each problem
  std::vector<Scratch> scratch_;           // of each worker
};

}  // namespace mpol::ops
