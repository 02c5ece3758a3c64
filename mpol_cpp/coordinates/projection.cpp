#include <mpol_cpp/coordinates/projection.h>

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr double edge_on = 1e-8;  // |cos i| below which nothing of a disc's extent is left

/// Turns the point (a, b) by an angle from a to b.
std::pair<Tensor, Tensor> turn(const Tensor& a, const Tensor& b, double angle) {
  const double c = std::cos(angle), s = std::sin(angle);
  return {a * c - b * s, a * s + b * c};
}

}  // namespace

std::pair<Tensor, Tensor> flat_to_observer(const Tensor& x, const Tensor& y, const OrbitAngles& angles) {
  const auto [x1, y1] = turn(x, y, angles.periastron);
  return turn(x1, y1 * std::cos(angles.inclination), angles.node);
}

std::pair<Tensor, Tensor> observer_to_flat(const Tensor& X, const Tensor& Y, const OrbitAngles& angles) {
  const double foreshortening = std::cos(angles.inclination);
  if (!(std::abs(foreshortening) >= edge_on)) {
    throw ValueError(fmt::format("the inclination is {} degrees; a disc seen edge on has no deprojection: it must differ from 90",
                                 angles.inclination / units::degree));
  }
  const auto [x1, projected] = turn(X, Y, -angles.node);
  return turn(x1, projected / foreshortening, -angles.periastron);
}

}  // namespace mpol
