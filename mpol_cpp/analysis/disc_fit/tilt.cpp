#include <mpol_cpp/analysis/disc_fit/tilt.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/units.h>

namespace mpol {

Tilt Tilt::of(const DiscGeometry& geometry) {
  const double eta = -std::log(std::abs(std::cos(geometry.inclination)));
  return {eta * std::cos(2 * geometry.position_angle), eta * std::sin(2 * geometry.position_angle)};
}

double Tilt::eta() const { return std::hypot(along, across); }

double Tilt::inclination() const { return std::acos(std::exp(-eta())); }

double Tilt::position_angle() const {
  const double angle = std::atan2(across, along) / 2;
  return angle < 0 ? angle + units::pi : angle;
}

TiltedLength::TiltedLength(const Tilt& tilt) : tilt_(tilt) {
  constexpr double series_below = 1e-3;
  const double eta = tilt.eta();
  cosh_ = std::cosh(eta);
  sinh_ratio_ = eta < series_below ? 1 + eta * eta / 6 : std::sinh(eta) / eta;
  sinh_slope_ = eta < series_below ? (1 + eta * eta / 10) / 3 : (cosh_ - sinh_ratio_) / (eta * eta);
}

TiltedLength::Value TiltedLength::at(double u, double v) const {
  const double square = u * u + v * v, difference = u * u - v * v, product = 2 * u * v;
  const double stretch = tilt_.along * difference - tilt_.across * product;
  const double q = std::sqrt(std::max(0.0, square * cosh_ - sinh_ratio_ * stretch));
  if (q == 0) return {};
  const double common = sinh_ratio_ * square - sinh_slope_ * stretch;
  return {.q = q,
          .by_along = (tilt_.along * common - sinh_ratio_ * difference) / (2 * q),
          .by_across = (tilt_.across * common + sinh_ratio_ * product) / (2 * q)};
}

}  // namespace mpol
