#pragma once

#include <utility>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// How a flat orbit or disc is seen, radian.
struct OrbitAngles {
  double periastron = 0;   ///< omega, argument of periastron: from the ascending node, in the plane of the orbit
  double inclination = 0;  ///< i, 0: face on
  double node = 0;         ///< Omega, position angle of the ascending node, North through East
};

/// From the plane (x, y) of an orbit to the sky (X, Y) as the observer sees it, X to the North, Y to the East, +Z towards
/// the observer: rotations by omega about z, by -i about x, by Omega about z.
///
///   X = x1 cos Omega - y1 cos i sin Omega,   x1 = x cos omega - y sin omega
///   Y = x1 sin Omega + y1 cos i cos Omega,   y1 = x sin omega + y cos omega
///
/// @param x, y  real tensors whose shapes broadcast, any unit, dtype and device
/// @return      X, Y: differentiable, in the unit and dtype of x and y
/// Source: the conventions of Murray & Correia 2010; MPoL's flat_to_observer.
std::pair<Tensor, Tensor> flat_to_observer(const Tensor& x, const Tensor& y, const OrbitAngles& angles);

/// The inverse: where in its plane (x, y) the point of a flat disc lies that is seen at (X, Y).
/// @throws ValueError for a disc seen edge on (|cos i| below 1e-8)
std::pair<Tensor, Tensor> observer_to_flat(const Tensor& X, const Tensor& Y, const OrbitAngles& angles);

}  // namespace mpol
