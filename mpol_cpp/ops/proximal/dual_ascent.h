#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// Dual images on their way through accelerated steps, by LibTorch's operations: v = p' + (t-1)/t' (p' - p), begun anew with
/// t = 1, v = p' where a step has turned against the way. Source: Beck & Teboulle 2009; O'Donoghue & Candes 2015 for the restart.
class DualAscent {
 public:
  /// @param dual    (planes, problems, nchan, npix, npix), where it begins
  /// @param passes  of each problem, which then stands still
  DualAscent(const Tensor& dual, std::vector<std::int64_t> passes);

  std::int64_t most_passes() const;
  const Tensor& dual() const { return p_; }   ///< where it is
  const Tensor& ahead() const { return v_; }  ///< where the next step is taken
  /// @param next    p', like the dual images
  /// @param turned  whether it has turned, (problems, 1, 1, 1)
  void move_to(const Tensor& next, const Tensor& turned);

 private:
  std::vector<std::int64_t> passes_;
  std::int64_t done_ = 0;
  Tensor p_, v_, t_;
};

}  // namespace mpol::ops
