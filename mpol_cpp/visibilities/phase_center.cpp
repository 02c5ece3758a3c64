#include <mpol_cpp/visibilities/phase_center.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

std::string degrees(const std::optional<double>& angle) {
  return angle ? fmt::format("{:.9g}", *angle / units::degree) : std::string("unknown");
}

}  // namespace

std::optional<double> phase_centre_distance(const Observation& a, const Observation& b) {
  if (!a.declination || !b.declination) return std::nullopt;
  const double north = *b.declination - *a.declination;
  if (!a.right_ascension || !b.right_ascension) return std::abs(north);
  const double turn = std::remainder(*b.right_ascension - *a.right_ascension, 2 * units::pi);
  // The haversine, exact for small angles and for large ones.
  const double h =
      std::pow(std::sin(north / 2), 2) + std::cos(*a.declination) * std::cos(*b.declination) * std::pow(std::sin(turn / 2), 2);
  return 2 * std::asin(std::sqrt(std::min(1.0, h)));
}

std::string phase_centre_text(const Observation& observation) {
  return fmt::format("RA {}, Dec {} degrees", degrees(observation.right_ascension), degrees(observation.declination));
}

}  // namespace mpol
