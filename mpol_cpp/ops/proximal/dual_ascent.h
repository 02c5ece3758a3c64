#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol::ops {

using torch::Tensor;

/// How many dual steps each problem takes, told by the device: nobody waits for that.
struct DevicePasses {
  Tensor counts;      ///< (problems) int64, on the device of the images
  std::int64_t most;  ///< in any problem, or more
};

/// Dual images on their way through accelerated steps, by LibTorch's operations: v = p' + (t-1)/t' (p' - p), begun anew with
/// t = 1, v = p' where a step has turned against the way. Source: Beck & Teboulle 2009; O'Donoghue & Candes 2015 for the restart.
class DualAscent {
 public:
  /// @param dual    (planes, problems, nchan, npix, npix), where it begins
  /// @param passes  of each problem, which then stands still
  DualAscent(const Tensor& dual, const std::vector<std::int64_t>& passes);
  DualAscent(const Tensor& dual, const DevicePasses& passes);

  std::int64_t most_passes() const { return most_; }
  const Tensor& dual() const { return p_; }   ///< where it is
  const Tensor& ahead() const { return v_; }  ///< where the next step is taken
  /// @param next    p', like the dual images
  /// @param turned  whether it has turned, (problems, 1, 1, 1)
  void move_to(const Tensor& next, const Tensor& turned);

 private:
  Tensor passes_;  // (problems, 1, 1, 1); undefined where all problems have the most
  std::int64_t most_, done_ = 0;
  Tensor p_, v_, t_;
};

}  // namespace mpol::ops
