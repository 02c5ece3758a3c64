#include <mpol_cpp/simulation/uv_tracks.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <ATen/ops/empty.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// Angle by which the sky turns in a second, radian.
constexpr double sidereal_rate = 2 * units::pi / 86164.0905;

void check_options(const TrackOptions& options) {
  if (!(std::abs(options.declination()) <= 90 * units::degree))
    throw ValueError(fmt::format("declination {} degrees: it lies between -90 and 90", options.declination() / units::degree));
  if (!(options.integration_time() > 0) || !std::isfinite(options.integration_time()))
    throw ValueError(fmt::format("integration time {} s: it must be positive", options.integration_time()));
  if (!(options.hour_angle_start() < options.hour_angle_end()) ||
      !(options.hour_angle_end() - options.hour_angle_start() <= 360 * units::degree))
    throw ValueError(
        fmt::format("hour angles from {} to {} degrees: the end must come after the start, by 360 degrees "
                    "at most",
                    options.hour_angle_start() / units::degree, options.hour_angle_end() / units::degree));
  if (!(options.minimum_elevation() >= 0) || !(options.minimum_elevation() < 90 * units::degree))
    throw ValueError(
        fmt::format("minimum elevation {} degrees: it lies between 0 and 90", options.minimum_elevation() / units::degree));
}

/// Hour angles of the middles of the integrations during which the source is high enough.
std::vector<double> observed_hour_angles(const ArrayConfiguration& array, const TrackOptions& options) {
  const double step = options.integration_time() * sidereal_rate;
  const double range = options.hour_angle_end() - options.hour_angle_start();
  const auto integrations = static_cast<std::int64_t>(std::floor(range / step + 1e-9));
  if (integrations < 1)
    throw ValueError(
        fmt::format("integration time {} s is longer than the observation, {:.6g} s: shorten it or widen "
                    "the hour angles",
                    options.integration_time(), range / sidereal_rate));
  std::vector<double> observed;
  double highest = -90 * units::degree;
  for (std::int64_t k = 0; k < integrations; ++k) {
    const double hour_angle = options.hour_angle_start() + (static_cast<double>(k) + 0.5) * step;
    const double elevation = source_elevation(array.latitude, options.declination(), hour_angle);
    highest = std::max(highest, elevation);
    if (elevation >= options.minimum_elevation()) observed.push_back(hour_angle);
  }
  if (observed.empty())
    throw ValueError(
        fmt::format("the source rises to {:.1f} degrees at most, below the minimum elevation of {:.1f}: "
                    "change the declination, the hour angles or the minimum elevation",
                    highest / units::degree, options.minimum_elevation() / units::degree));
  return observed;
}

/// Differences of the antennas' equatorial coordinates X, Y, Z, metres.
std::vector<std::array<double, 3>> equatorial_baselines(const ArrayConfiguration& array) {
  const double sin_lat = std::sin(array.latitude), cos_lat = std::cos(array.latitude);
  std::vector<std::array<double, 3>> baselines;
  for (std::size_t i = 0; i < array.positions.size(); ++i) {
    for (std::size_t j = i + 1; j < array.positions.size(); ++j) {
      const auto &a = array.positions[i], &b = array.positions[j];
      const double east = a[0] - b[0], north = a[1] - b[1], up = a[2] - b[2];
      baselines.push_back({cos_lat * up - sin_lat * north, east, sin_lat * up + cos_lat * north});
    }
  }
  return baselines;
}

}  // namespace

double source_elevation(double latitude, double declination, double hour_angle) {
  const double sine =
      std::sin(latitude) * std::sin(declination) + std::cos(latitude) * std::cos(declination) * std::cos(hour_angle);
  return std::asin(std::clamp(sine, -1.0, 1.0));
}

UvTracks uv_tracks(const ArrayConfiguration& array, const TrackOptions& options) {
  check_options(options);
  if (array.antennas() < 2) throw ValueError(fmt::format("array of {} antennas: at least 2 are needed", array.antennas()));
  const auto hour_angles = observed_hour_angles(array, options);
  const auto baselines = equatorial_baselines(array);
  const auto nvis = static_cast<std::int64_t>(hour_angles.size() * baselines.size());

  UvTracks tracks{at::empty({nvis, 3}, torch::kFloat64), at::empty({nvis}, torch::kFloat64), at::empty({nvis}, torch::kFloat64)};
  auto* uvw = tracks.uvw.mutable_data_ptr<double>();
  auto* hour_angle = tracks.hour_angle.mutable_data_ptr<double>();
  auto* elevation = tracks.elevation.mutable_data_ptr<double>();
  const double sin_dec = std::sin(options.declination()), cos_dec = std::cos(options.declination());
  for (const double h : hour_angles) {
    const double sin_h = std::sin(h), cos_h = std::cos(h);
    const double height = source_elevation(array.latitude, options.declination(), h);
    for (const auto& [x, y, z] : baselines) {
      *uvw++ = sin_h * x + cos_h * y;
      *uvw++ = -sin_dec * cos_h * x + sin_dec * sin_h * y + cos_dec * z;
      *uvw++ = cos_dec * cos_h * x - cos_dec * sin_h * y + sin_dec * z;
      *hour_angle++ = h;
      *elevation++ = height;
    }
  }
  return tracks;
}

}  // namespace mpol
