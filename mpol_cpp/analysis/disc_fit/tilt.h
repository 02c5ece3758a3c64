#pragma once

#include <mpol_cpp/analysis/disc_geometry.h>

namespace mpol {

/// Inclination and position angle in numbers that stay smooth where a disc is seen face on: eta = -ln cos i,
/// (along, across) = eta (cos 2PA, sin 2PA). With the baseline's length measured so that the deprojection keeps areas,
///
///   q^2/cos i = (u^2 + v^2) cosh eta - (sinh eta/eta) [along (u^2 - v^2) - 2 across u v].
struct Tilt {
  double along = 0, across = 0;

  static Tilt of(const DiscGeometry& geometry);
  double eta() const;
  double inclination() const;     ///< radian, [0, pi/2)
  double position_angle() const;  ///< radian, [0, pi); 0 where eta is 0
};

/// Lengths q/sqrt(cos i) of baselines under a tilt, with derivatives.
class TiltedLength {
 public:
  struct Value {
    double q = 0, by_along = 0, by_across = 0;
  };

  explicit TiltedLength(const Tilt& tilt);
  /// @param u, v  wavelengths
  Value at(double u, double v) const;

 private:
  Tilt tilt_;
  double cosh_, sinh_ratio_, sinh_slope_;  // cosh eta, sinh eta/eta, and the derivative of that over eta
};

}  // namespace mpol
