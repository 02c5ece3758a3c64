#include <mpol_cpp/images/combined_beam.h>

#include <cmath>

#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// Squares of the full widths at half maximum as a matrix over (North, East), arcsec^2.
struct Covariance {
  double north, east, mixed;
};

Covariance covariance(const GaussianBeam& beam) {
  const double major = beam.bmaj * beam.bmaj, minor = beam.bmin * beam.bmin;
  const double c = std::cos(beam.bpa * units::degree), s = std::sin(beam.bpa * units::degree);
  return {major * c * c + minor * s * s, major * s * s + minor * c * c, (major - minor) * s * c};
}

/// The ellipse of a matrix; of what is no Gaussian the minor axis is NaN.
GaussianBeam ellipse(const Covariance& matrix) {
  const double mean = (matrix.north + matrix.east) / 2, difference = (matrix.north - matrix.east) / 2;
  const double radius = std::hypot(difference, matrix.mixed);
  return {.bmaj = std::sqrt(mean + radius),
          .bmin = std::sqrt(mean - radius),
          .bpa = std::atan2(matrix.mixed, difference) / 2 / units::degree};
}

}  // namespace

GaussianBeam convolved_beam(const GaussianBeam& a, const GaussianBeam& b) {
  const auto first = covariance(a), second = covariance(b);
  return ellipse({first.north + second.north, first.east + second.east, first.mixed + second.mixed});
}

std::optional<GaussianBeam> beam_between(const GaussianBeam& from, const GaussianBeam& to) {
  const auto first = covariance(from), second = covariance(to);
  const auto beam = ellipse({second.north - first.north, second.east - first.east, second.mixed - first.mixed});
  if (!(beam.bmin > 0)) return std::nullopt;
  return beam;
}

}  // namespace mpol
