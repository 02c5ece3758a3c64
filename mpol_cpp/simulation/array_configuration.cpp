#include <mpol_cpp/simulation/array_configuration.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string_view>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

using Position = std::array<double, 3>;

double distance(const Position& a, const Position& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

Position mean_position(const std::vector<Position>& positions) {
  Position mean{};
  for (const auto& position : positions)
    for (std::size_t i = 0; i < 3; ++i) mean[i] += position[i] / static_cast<double>(positions.size());
  return mean;
}

/// Geodetic latitude on the WGS84 ellipsoid of a geocentric position (Bowring 1976, one step: exact to 1e-9 rad near
/// the surface).
double geodetic_latitude(const Position& position) {
  constexpr double a = 6378137.0;
  constexpr double flattening = 1 / 298.257223563;
  constexpr double b = a * (1 - flattening);
  constexpr double e2 = flattening * (2 - flattening);
  constexpr double second_e2 = e2 / (1 - e2);
  const double p = std::hypot(position[0], position[1]);
  const double theta = std::atan2(position[2] * a, p * b);
  return std::atan2(position[2] + second_e2 * b * std::pow(std::sin(theta), 3), p - e2 * a * std::pow(std::cos(theta), 3));
}

void turn_geocentric_to_local(ArrayConfiguration& array) {
  const auto center = mean_position(array.positions);
  array.latitude = geodetic_latitude(center);
  const double longitude = std::atan2(center[1], center[0]);
  const double sin_lat = std::sin(array.latitude), cos_lat = std::cos(array.latitude);
  const double sin_lon = std::sin(longitude), cos_lon = std::cos(longitude);
  for (auto& position : array.positions) {
    const double x = position[0] - center[0], y = position[1] - center[1], z = position[2] - center[2];
    const double outward = cos_lon * x + sin_lon * y;  // away from the Earth's axis, in the meridian's plane
    position = {-sin_lon * x + cos_lon * y, -sin_lat * outward + cos_lat * z, cos_lat * outward + sin_lat * z};
  }
}

/// What the comments of a configuration file say.
struct Header {
  bool geocentric = false;
  std::optional<double> latitude;  // radian
  std::string observatory;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

void read_comment(const std::string& comment, const std::string& where, Header& header) {
  const auto equals = comment.find('=');
  if (equals == std::string::npos) return;
  const auto key = trimmed(comment.substr(0, equals));
  const auto value = trimmed(comment.substr(equals + 1));
  if (key == "observatory") header.observatory = value;
  if (key == "latitude") {
    std::string_view text = value;  // a unit or a remark may follow
    const auto degrees = take_number<double>(text);
    if (!degrees || !(std::abs(*degrees) <= 90))
      throw FileError(fmt::format("{}: latitude is \"{}\"; give degrees between -90 and 90", where, value));
    header.latitude = *degrees * units::degree;
  }
  if (key == "coordsys") {
    const auto system = value.substr(0, value.find_first_of(" \t("));
    if (system != "LOC" && system != "XYZ")
      throw FileError(
          fmt::format("{}: coordsys is \"{}\"; convert the positions to LOC (East, North, Up) or XYZ "
                      "(geocentric)",
                      where, value));
    header.geocentric = system == "XYZ";
  }
}

struct Antenna {
  Position position;
  std::optional<double> diameter;
};

Antenna read_antenna(const std::string& line, const std::string& where) {
  std::string_view text = line;
  Antenna antenna{};
  for (auto& coordinate : antenna.position) {
    const auto number = take_number<double>(text);
    if (!number || !std::isfinite(*number))
      throw FileError(fmt::format("{}: \"{}\" is not an antenna; expected x y z in metres", where, trimmed(line)));
    coordinate = *number;
  }
  if (const auto diameter = take_number<double>(text)) {
    if (!(*diameter > 0) || !std::isfinite(*diameter))
      throw FileError(fmt::format("{}: the dish diameter is {}; it must be positive", where, *diameter));
    antenna.diameter = *diameter;
  } else if (text.find_first_not_of(" \t\r") != std::string_view::npos) {
    throw FileError(fmt::format("{}: \"{}\": the fourth column is the dish diameter in metres", where, trimmed(line)));
  }
  return antenna;
}

}  // namespace

double ArrayConfiguration::longest_baseline() const {
  double longest = 0;
  for (std::size_t i = 0; i < positions.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) longest = std::max(longest, distance(positions[i], positions[j]));
  return longest;
}

ArrayConfiguration alma_like_array(double longest_baseline, std::int64_t antennas) {
  if (antennas < 2) throw ValueError(fmt::format("array of {} antennas: at least 2 are needed", antennas));
  if (!(longest_baseline > 0) || !std::isfinite(longest_baseline))
    throw ValueError(fmt::format("longest baseline {} m: it must be positive", longest_baseline));
  ArrayConfiguration array;
  array.name = "ALMA-like";
  array.latitude = alma_latitude;
  const double golden_angle = units::pi * (3 - std::sqrt(5.0));
  for (std::int64_t k = 0; k < antennas; ++k) {
    const auto step = static_cast<double>(k);
    const double radius = std::pow((step + 0.5) / static_cast<double>(antennas), 1.2);
    array.positions.push_back({radius * std::sin(golden_angle * step), radius * std::cos(golden_angle * step), 0.0});
  }
  const double scale = longest_baseline / array.longest_baseline();
  for (auto& position : array.positions)
    for (auto& coordinate : position) coordinate *= scale;
  return array;
}

ArrayConfiguration read_array_configuration(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw FileError(
        fmt::format("array configuration \"{}\" cannot be read: give a text file of antenna positions", path.string()));
  ArrayConfiguration array;
  Header header;
  bool diameter_known = false;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto where = fmt::format("{}:{}", path.string(), number);
    const auto hash = line.find('#');
    if (hash != std::string::npos) read_comment(line.substr(hash + 1), where, header);
    const auto text = line.substr(0, hash);
    if (trimmed(text).empty()) continue;
    const auto antenna = read_antenna(text, where);
    array.positions.push_back(antenna.position);
    if (antenna.diameter && !diameter_known) {
      array.diameter = *antenna.diameter;
      diameter_known = true;
    }
  }
  if (array.antennas() < 2)
    throw FileError(
        fmt::format("array configuration \"{}\" has {} antennas: at least 2 are needed", path.string(), array.antennas()));
  if (header.geocentric) turn_geocentric_to_local(array);
  else array.latitude = header.latitude.value_or(alma_latitude);
  if (!(array.longest_baseline() > 0))
    throw FileError(fmt::format("array configuration \"{}\": all antennas stand at one place", path.string()));
  array.name = header.observatory.empty() ? path.stem().string() : header.observatory;
  return array;
}

}  // namespace mpol
