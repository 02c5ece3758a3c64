#include "catch.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/simulation/array_configuration.h>

#include "comma_locale.h"

using namespace mpol;

namespace {

/// A configuration file that lives as long as the test.
class ConfigurationFile {
 public:
  explicit ConfigurationFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("mpol_array_{}.cfg", ::getpid())) {
    std::ofstream(path_) << text;
  }
  ~ConfigurationFile() { std::filesystem::remove(path_); }
  ConfigurationFile(const ConfigurationFile&) = delete;
  ConfigurationFile& operator=(const ConfigurationFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

double distance(const ArrayConfiguration& array, std::size_t i, std::size_t j) {
  const auto &a = array.positions[i], &b = array.positions[j];
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

}  // namespace

TEST_CASE("the built-in array has the antennas and the longest baseline asked for", "[visibilities][quick]") {
  const auto array = alma_like_array(1600);
  CHECK(array.antennas() == 43);
  CHECK(array.baselines() == 903);
  CHECK(array.longest_baseline() == Approx(1600).epsilon(1e-12));
  CHECK(array.latitude == Approx(-23.02 * units::degree).epsilon(1e-3));
  for (std::size_t i = 0; i < 43; ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(distance(array, i, j) > array.diameter);
  CHECK_THROWS_AS(alma_like_array(0), ValueError);
  CHECK_THROWS_AS(alma_like_array(NAN), ValueError);
  CHECK_THROWS_AS(alma_like_array(100, 1), ValueError);
}

TEST_CASE("array files: local coordinates, comments, diameters and names", "[visibilities][quick]") {
  const ConfigurationFile file(
      "# observatory=TEST\n# coordsys=LOC (local tangent plane)\n# latitude=34.1\n"
      "# x y z diam pad\n\n  10.5 -20 1 25 N01\n-4 8e1 0  # a comment\n");
  const auto array = read_array_configuration(file.path());
  CHECK(array.name == "TEST");
  CHECK(array.latitude == Approx(34.1 * units::degree));
  CHECK(array.diameter == 25);
  REQUIRE(array.antennas() == 2);
  CHECK(array.positions[0] == std::array<double, 3>{10.5, -20, 1});
  CHECK(array.positions[1] == std::array<double, 3>{-4, 80, 0});
}

TEST_CASE("array files are read the same under a locale with a decimal comma", "[visibilities]") {
  const ConfigurationFile file("# latitude=34.1\n10.5 -20.25 1.125 25.5\n-4 8e1 0\n");
  const mpol::testing::CommaLocale comma;
  const auto array = read_array_configuration(file.path());
  CHECK(array.latitude == Approx(34.1 * units::degree));
  CHECK(array.positions[0] == std::array{10.5, -20.25, 1.125});
  CHECK(array.diameter == 25.5);
}

TEST_CASE("array files: geocentric positions become East, North, Up", "[visibilities][quick]") {
  // Steps of 100 m to the East and to the North from a place on the ellipsoid at 40 degrees North, 30 degrees East.
  const double latitude = 40 * units::degree, longitude = 30 * units::degree;
  const double e2 = (2 - 1 / 298.257223563) / 298.257223563;
  const double normal = 6378137 / std::sqrt(1 - e2 * std::pow(std::sin(latitude), 2));
  const std::array<double, 3> place = {normal * std::cos(latitude) * std::cos(longitude),
                                       normal * std::cos(latitude) * std::sin(longitude), normal * (1 - e2) * std::sin(latitude)};
  const std::array<double, 3> east = {-std::sin(longitude), std::cos(longitude), 0};
  const std::array<double, 3> north = {-std::sin(latitude) * std::cos(longitude), -std::sin(latitude) * std::sin(longitude),
                                       std::cos(latitude)};
  const auto line = [&](double to_east, double to_north) {
    return fmt::format("{:.6f} {:.6f} {:.6f} 12\n", place[0] + to_east * east[0] + to_north * north[0],
                       place[1] + to_east * east[1] + to_north * north[1], place[2] + to_east * east[2] + to_north * north[2]);
  };
  const ConfigurationFile file("# coordsys=XYZ\n" + line(100, 0) + line(-100, 0) + line(0, 100) + line(0, -100));
  const auto array = read_array_configuration(file.path());
  CHECK(array.latitude == Approx(latitude).epsilon(1e-8));
  CHECK(array.positions[0][0] == Approx(100).margin(1e-4));
  CHECK(array.positions[0][1] == Approx(0).margin(1e-4));
  CHECK(array.positions[2][0] == Approx(0).margin(1e-4));
  CHECK(array.positions[2][1] == Approx(100).margin(1e-4));
  CHECK(array.positions[2][2] == Approx(0).margin(1e-3));
}

TEST_CASE("array files that mean nothing are refused with the line", "[visibilities][quick]") {
  const auto refuses = [](const std::string& text, const std::string& part) {
    INFO(text);
    const ConfigurationFile file(text);
    CHECK_THROWS_WITH(read_array_configuration(file.path()), ContainsSubstring(part));
    CHECK_THROWS_AS(read_array_configuration(file.path()), FileError);
  };
  refuses("", "0 antennas");
  refuses("1 2 3\n", "1 antennas");
  refuses("1 2 3\n1 2\n", ":2:");
  refuses("1 2 3\nx y z\n", ":2:");
  refuses("1 2 nan\n1 2 3\n", ":1:");
  refuses("1 2 3 -12\n4 5 6\n", "diameter");
  refuses("1 2 3 pad\n4 5 6\n", "fourth column");
  refuses("1 2 3\n1 2 3\n", "one place");
  refuses("# coordsys=UTM\n1 2 3\n4 5 6\n", "coordsys");
  refuses("# latitude=120\n1 2 3\n4 5 6\n", "latitude");
  CHECK_THROWS_AS(read_array_configuration("/no/such/file.cfg"), FileError);
  CHECK_THROWS_AS(read_array_configuration(std::filesystem::temp_directory_path()), FileError);
}
