// Dirty images, and visibilities in a measurement set, beside WSClean's; where it is installed.
#include "catch.h"

#include <cmath>
#include <cstdlib>
#include <numbers>
#include <random>
#include <string>

#include <mpol_cpp/core/units.h>

#include "../python.h"
#include "program.h"
#include "set_writer.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Noisy data of two point sources in two windows, in CASA's sign convention, without w.
TestSet two_points() {
  TestSet set;
  set.windows = {{{230e9, 231e9}, {9, 12}, 5}, {{245e9}, {9, 12}, 5}};
  std::mt19937 random(3);
  std::normal_distribution<double> length(0, 150), noise(0, 0.1);  // m, Jy
  for (std::size_t i = 0; i < 9000; ++i) {
    TestRow row;
    row.window = static_cast<int>(i % 2);
    row.antenna1 = static_cast<int>(i % 5);
    row.antenna2 = 10;
    row.uvw = {length(random), length(random), 0};
    for (const double frequency : set.windows[i % 2].frequencies) {
      const double scale = 2 * std::numbers::pi * frequency / units::speed_of_light * units::arcsec;
      const auto source = [&](double jy, double to_east, double to_north) {
        return std::polar(jy, scale * (row.uvw[0] * to_east + row.uvw[1] * to_north));
      };
      const auto value = source(0.7, 2.1, -1.4) + source(0.3, -4.0, 3.3);
      for (int hand = 0; hand < 2; ++hand)
        row.data.emplace_back(static_cast<float>(value.real() + noise(random)), static_cast<float>(value.imag() + noise(random)));
    }
    row.weight = {50, 50};
    set.rows.push_back(row);
  }
  return set;
}

}  // namespace

TEST_CASE("WSClean makes the same dirty images, and images what predict writes at its place", "[cli][wsclean]") {
  if (std::system("command -v wsclean > /dev/null") != 0) {
    WARN("WSClean is not installed (Debian: wsclean): nothing was compared with it");
    return;
  }
  const TemporaryFolder folder;
  const auto set = (folder / "obs.ms").string();
  write_set(set, two_points());
  const auto output = run_command(python() + " " + MPOL_DATA_DIR + "/../scripts/check_wsclean " + set + " --mpol " +
                                  MPOL_PROGRAM + " --cell-size 0.1 --npix 256");
  INFO(output);
  CHECK(output.find("predicted source: ") != std::string::npos);
}
