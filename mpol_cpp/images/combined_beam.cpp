#include <mpol_cpp/images/combined_beam.h>

#include <cmath>

#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// Squares of the full widths at half maximum as a matrix over (North, East), arcsec^2.
struct Covariance {
  double north, east, mixed;
};

Covariance covariance(const Beam& beam) {
  const double major = beam.major * beam.major, minor = beam.minor * beam.minor;
  const double c = std::cos(beam.position_angle), s = std::sin(beam.position_angle);
  return {major * c * c + minor * s * s, major * s * s + minor * c * c, (major - minor) * s * c};
}

/// The ellipse of a matrix; of what is no Gaussian the minor axis is NaN.
Beam ellipse(const Covariance& matrix) {
  const double mean = (matrix.north + matrix.east) / 2, difference = (matrix.north - matrix.east) / 2;
  const double radius = std::hypot(difference, matrix.mixed);
  return {.major = std::sqrt(mean + radius),
          .minor = std::sqrt(mean - radius),
          .position_angle = std::atan2(matrix.mixed, difference) / 2};
}

}  // namespace

Beam convolved_beam(const Beam& a, const Beam& b) {
  const auto first = covariance(a), second = covariance(b);
  return ellipse({first.north + second.north, first.east + second.east, first.mixed + second.mixed});
}

std::optional<Beam> beam_between(const Beam& from, const Beam& to) {
  const auto first = covariance(from), second = covariance(to);
  const auto beam = ellipse({second.north - first.north, second.east - first.east, second.mixed - first.mixed});
  if (!(beam.minor > 0)) return std::nullopt;
  return beam;
}

}  // namespace mpol
