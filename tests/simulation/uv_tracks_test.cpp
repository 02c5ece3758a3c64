#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/simulation/uv_tracks.h>

#include "compare.h"

using namespace mpol;
using namespace mpol::testing;
using mpol::units::degree;

namespace {

/// Two antennas, the first `east`, `north`, `up` metres from the second.
ArrayConfiguration pair_at(double latitude, double east, double north, double up) {
  ArrayConfiguration array;
  array.latitude = latitude;
  array.positions = {{east, north, up}, {0, 0, 0}};
  return array;
}

TrackOptions whole_day(double declination) {
  return TrackOptions()
      .declination(declination)
      .hour_angle_start(-180 * degree)
      .hour_angle_end(180 * degree)
      .integration_time(600)
      .minimum_elevation(0);
}

Tensor column(const UvTracks& tracks, int i) { return tracks.uvw.select(1, i); }

}  // namespace

TEST_CASE("from a pole, tracks are circles", "[visibilities][quick]") {
  const auto tracks = uv_tracks(pair_at(90 * degree, 30, 40, 0), whole_day(90 * degree));
  const auto radius = (column(tracks, 0).square() + column(tracks, 1).square()).sqrt();
  CHECK(tracks.uvw.size(0) == 143);  // whole integrations of 600 s in a sidereal day
  CHECK(relative_error(radius, torch::full_like(radius, 50.0)) < 1e-13);
  CHECK(column(tracks, 2).abs().max().item<double>() < 1e-11);
}

TEST_CASE("tracks are ellipses about (0, Z cos D) with the axis ratio sin D", "[visibilities][quick]") {
  const double latitude = 0.3, declination = 0.5, east = 120, north = -70, up = 4;
  const auto tracks = uv_tracks(pair_at(latitude, east, north, up), whole_day(declination).minimum_elevation(0));
  const double x = std::cos(latitude) * up - std::sin(latitude) * north;
  const double z = std::sin(latitude) * up + std::cos(latitude) * north;
  const auto u = column(tracks, 0), v = (column(tracks, 1) - z * std::cos(declination)) / std::sin(declination);
  const auto size2 = u.square() + v.square();
  CHECK(relative_error(size2, torch::full_like(size2, x * x + east * east)) < 1e-12);
}

TEST_CASE("from the equator to the equator, an East-West baseline moves on a line", "[visibilities][quick]") {
  const auto tracks = uv_tracks(pair_at(0, 100, 0, 0), whole_day(0));
  CHECK(relative_error(column(tracks, 0), 100 * tracks.hour_angle.cos()) < 1e-13);
  CHECK(column(tracks, 1).abs().max().item<double>() < 1e-11);
}

TEST_CASE("baselines keep their length, and point East and North at transit", "[visibilities][quick]") {
  const auto array = pair_at(-0.4, 300, 200, 10);
  const auto tracks = uv_tracks(array, whole_day(-0.5));
  const auto length = tracks.uvw.square().sum(1).sqrt();
  CHECK(relative_error(length, torch::full_like(length, array.longest_baseline())) < 1e-13);

  // A source in the zenith at transit sees the array as a map of it.
  const auto transit = TrackOptions().declination(-0.4).hour_angle_start(-0.01 * degree).hour_angle_end(0.01 * degree);
  const auto now = uv_tracks(array, TrackOptions(transit).integration_time(4.78));
  const auto middle = now.uvw[0];
  CHECK(middle[0].item<double>() == Approx(300).margin(0.02));
  CHECK(middle[1].item<double>() == Approx(200).margin(0.02));
  CHECK(middle[2].item<double>() == Approx(10).margin(0.1));
}

TEST_CASE("times are outermost, pairs in order, low sources left out", "[visibilities][quick]") {
  auto array = pair_at(-23 * degree, 100, 0, 0);
  array.positions.push_back({0, 500, 0});
  const auto tracks = uv_tracks(array, whole_day(-24 * degree).minimum_elevation(20 * degree));
  CHECK(tracks.uvw.size(0) % 3 == 0);
  CHECK(tracks.elevation.min().item<double>() >= 20 * degree);
  CHECK(tracks.uvw.size(0) < std::int64_t{3} * 143);
  CHECK(tracks.hour_angle[0].item<double>() == tracks.hour_angle[2].item<double>());
  CHECK(tracks.hour_angle[3].item<double>() > tracks.hour_angle[2].item<double>());
  const auto first_pair = tracks.uvw[0], second_pair = tracks.uvw[1], third_pair = tracks.uvw[2];
  CHECK(relative_error(second_pair - first_pair, third_pair) < 1e-12);  // (0,2) = (0,1) + (1,2)
}

TEST_CASE("elevation: the zenith, the pole, the horizon", "[visibilities][quick]") {
  CHECK(source_elevation(0.4, 0.4, 0) == Approx(90 * degree));
  CHECK(source_elevation(0.4, 90 * degree, 1.0) == Approx(0.4));
  CHECK(source_elevation(0, 0, 90 * degree) == Approx(0).margin(1e-12));
}

TEST_CASE("impossible observations are refused", "[visibilities][quick]") {
  const auto array = pair_at(-23 * degree, 100, 0, 0);
  const auto refuses = [&](const TrackOptions& options) { CHECK_THROWS_AS(uv_tracks(array, options), ValueError); };
  refuses(TrackOptions().declination(91 * degree));
  refuses(TrackOptions().declination(NAN));
  refuses(TrackOptions().integration_time(0));
  refuses(TrackOptions().integration_time(INFINITY));
  refuses(TrackOptions().integration_time(1e6));
  refuses(TrackOptions().hour_angle_start(0.1).hour_angle_end(0.1));
  refuses(TrackOptions().hour_angle_start(-4).hour_angle_end(4));
  refuses(TrackOptions().minimum_elevation(-0.1));
  refuses(TrackOptions().declination(80 * degree));  // never rises at ALMA
  auto single = array;
  single.positions.pop_back();
  CHECK_THROWS_AS(uv_tracks(single), ValueError);
}
