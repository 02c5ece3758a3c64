#pragma once

#include <mpol_cpp/proximal/proximal_map.h>

namespace mpol {

/// Functions that are 0 in a convex set and infinite outside: their proximal map is the nearest point of the set, whatever the
/// step.

/// x >= 0, and 0 where a mask is 0.
class NonNegative : public ProximalMap {
 public:
  /// @param mask  1 or 0, broadcastable to x; undefined: no value need be 0
  explicit NonNegative(Tensor mask = {}) : mask_(std::move(mask)) {}
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return problem_sums(x) * 0; }
  Tensor apply(const Tensor& q, const Tensor& step) override;

 private:
  Tensor mask_;
};

/// lower <= x <= upper.
class Box : public ProximalMap {
 public:
  /// @throws ValueError unless lower <= upper
  Box(double lower, double upper);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return problem_sums(x) * 0; }
  Tensor apply(const Tensor& q, const Tensor& step) override;

 private:
  double lower_, upper_;
};

/// |x|_1 <= radius in each problem.
/// Source: Duchi, Shalev-Shwartz, Singer & Chandra 2008.
class L1Ball : public ProximalMap {
 public:
  /// @throws ValueError unless the radius is > 0
  explicit L1Ball(double radius);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return problem_sums(x) * 0; }
  Tensor apply(const Tensor& q, const Tensor& step) override;

 private:
  double radius_;
};

/// |x - center|_2 <= radius in each problem: with data as the center and the noise's length as the radius, the epsilon ball.
class L2Ball : public ProximalMap {
 public:
  /// @param radii   (…) of each problem, or of no dimension: of all; >= 0
  /// @param center  broadcastable to x; undefined: 0
  /// @throws ValueError when a radius is below 0 or not finite
  explicit L2Ball(Tensor radii, Tensor center = {});
  /// One radius for all problems.
  explicit L2Ball(double radius, Tensor center = {});
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return problem_sums(x) * 0; }
  Tensor apply(const Tensor& q, const Tensor& step) override;

 private:
  Tensor radii_, center_;
};

}  // namespace mpol
