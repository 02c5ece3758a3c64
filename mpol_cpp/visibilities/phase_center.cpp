#include <mpol_cpp/visibilities/phase_center.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr std::int64_t samples_of_turn = 1 << 16;

std::string degrees(const std::optional<double>& angle) {
  return angle ? fmt::format("{:.9g}", *angle / units::degree) : std::string("unknown");
}

}  // namespace

std::optional<double> phase_center_distance(const Observation& a, const Observation& b) {
  if (!a.declination || !b.declination) return std::nullopt;
  const double north = *b.declination - *a.declination;
  if (!a.right_ascension || !b.right_ascension) return std::abs(north);
  const double turn = std::remainder(*b.right_ascension - *a.right_ascension, 2 * units::pi);
  // The haversine, exact for small angles and for large ones.
  const double h =
      std::pow(std::sin(north / 2), 2) + std::cos(*a.declination) * std::cos(*b.declination) * std::pow(std::sin(turn / 2), 2);
  return 2 * std::asin(std::sqrt(std::min(1.0, h)));
}

std::string phase_center_text(const Observation& observation) {
  return fmt::format("RA {}, Dec {} degrees", degrees(observation.right_ascension), degrees(observation.declination));
}

Visibilities with_center(const Visibilities& visibilities, double east, double north, const ArrayRoom& room) {
  auto moved = room.empty(visibilities.data().sizes(), visibilities.data().scalar_type()).to(visibilities.data().device());
  for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
    for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += samples_of_turn) {
      const auto end = std::min(visibilities.nvis(), begin + samples_of_turn);
      const auto samples = visibilities.block(channel, begin, end);
      const auto turns = (samples.u * (east * units::arcsec) + samples.v * (north * units::arcsec)).mul_(2 * units::pi);
      moved[channel].slice(0, begin, end).copy_(samples.data * at::polar(at::ones_like(turns), turns));
    }
  }
  Visibilities result(visibilities.baselines(), std::move(moved), visibilities.weights());
  if (visibilities.frequencies().defined()) result.set_frequencies(visibilities.frequencies());
  auto observation = visibilities.observation();
  observation.center = {observation.center.east + east, observation.center.north + north};
  result.set_observation(std::move(observation));
  return result;
}

std::string offset_text(const SkyOffset& offset) {
  const double larger = std::max(std::abs(offset.east), std::abs(offset.north));
  const int decimals = larger > 0 ? std::max(2, 1 - static_cast<int>(std::floor(std::log10(larger)))) : 2;
  return fmt::format("{:.{}f}\" {} and {:.{}f}\" {}", std::abs(offset.east), decimals, offset.east < 0 ? "West" : "East",
                     std::abs(offset.north), decimals, offset.north < 0 ? "South" : "North");
}

}  // namespace mpol
