#pragma once

#include <memory>

#include <mpol_cpp/solvers/primal_dual.h>

namespace mpol {

/// What fits the data as well as their noise allows, and is simplest so:
///
///   min_x g(x) + h(Psi x)  where  |A x - b| <= epsilon
struct BallConstrained {
  std::shared_ptr<const LinearMap> measurement;  ///< A, with noise of unit variance: weighted by 1/sigma
  Tensor data;                                   ///< b, weighted alike, (…, channels, rows, columns)
  Tensor radii;                                  ///< epsilon of each problem, (…) or one for all, >= 0
  std::shared_ptr<const LinearMap> analysis;     ///< Psi, such as SaraDictionary or ImageDifferences; none: no h
  std::shared_ptr<ProximalMap> simplicity;       ///< h, such as L1Norm
  std::shared_ptr<ProximalMap> allowed;          ///< g, such as NonNegative; none: 0
};

/// sqrt(n + 2 sqrt(2 n)): what the length of n noises of unit variance stays below in 97.7 % of all cases.
double noise_radius(double count);

/// The primal-dual method for such a problem, with both maps scaled to the norm 1 so that one dual step suits both. With it
/// |A x - b| exceeds epsilon by the tolerance's part at most.
/// @throws ValueError where something is missing
/// Source: Carrillo, McEwen & Wiaux 2012 (the problem).
std::unique_ptr<PrimalDual> ball_constrained(const BallConstrained& problem, const Tensor& start, PrimalDualOptions options = {});

}  // namespace mpol
