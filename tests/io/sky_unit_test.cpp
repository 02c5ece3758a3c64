#include "catch.h"

#include <cmath>

#include <ATen/ops/ones.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/sky_unit.h>

using namespace mpol;

namespace {

io::FitsImage ones_per_beam(std::int64_t nchan, const std::vector<Beam>& beams) {
  io::FitsImage image;
  image.cube = at::ones({nchan, 4, 4}, torch::kFloat64);
  image.cell_size = 0.1;
  image.unit = "Jy/beam";
  image.beams = beams;
  return image;
}

}  // namespace

TEST_CASE("Jy/beam is divided by the area of each channel's own beam", "[io][quick]") {
  const Beam narrow{0.2, 0.1, 0}, wide{0.4, 0.3, 1};
  const auto area = [](const Beam& beam) { return units::pi * beam.major * beam.minor / (4 * std::log(2.0)); };
  const auto shared = io::brightness_of(ones_per_beam(2, {narrow}), "a.fits");
  CHECK(shared[1][3][3].item<double>() == Approx(1 / area(narrow)));
  const auto own = io::brightness_of(ones_per_beam(2, {narrow, wide}), "a.fits");
  CHECK(own[0][0][0].item<double>() == Approx(1 / area(narrow)));
  CHECK(own[1][0][0].item<double>() == Approx(1 / area(wide)));
}

TEST_CASE("beams of other channels than the image's are refused", "[io][quick]") {
  const Beam beam{0.2, 0.1, 0};
  const std::vector<Beam> three(3, beam);
  for (const std::int64_t nchan : {1, 2, 4}) {
    CHECK_THROWS_WITH(io::brightness_of(ones_per_beam(nchan, three), "a.fits"),
                      ContainsSubstring("3 beams for " + std::to_string(nchan) + " channel"));
  }
  CHECK_THROWS_AS(io::brightness_of(ones_per_beam(1, {}), "a.fits"), DataError);
}
