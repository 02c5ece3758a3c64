#include "catch.h"

#include <mpol_cpp/coordinates/optimal_grid.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>

#include "golden.h"

using namespace mpol;

TEST_CASE("optimal grids equal MPoL's", "[coordinates][quick]") {
  const Golden golden("utils"), dataset("dataset");
  const double longest = std::max(dataset("in_uu")[0].abs().max().item<double>(), dataset("in_vv")[0].abs().max().item<double>());
  const auto& widths = golden("in_image_widths_arcsec");
  for (std::int64_t i = 0; i < widths.size(0); ++i) {
    const auto grid = optimal_grid(widths[i].item<double>(), longest);
    CHECK(grid.cell_size() == Approx(golden("out_optimal_cell_size")[i].item<double>()).epsilon(1e-13));
    CHECK(grid.npix() == golden("out_optimal_npix")[i].item<std::int64_t>());
  }
}

TEST_CASE("an optimal grid holds the data and the image, with little to spare", "[coordinates][quick]") {
  const double longest = GENERATE(1e3, 3.3e5, 7.123e6), fringes = GENERATE(0.1, 3.0, 17.5, 900.0);
  const double width = fringes / (longest * units::arcsec);
  const auto grid = optimal_grid(width, longest);
  CHECK(grid.data_fit(longest, longest));
  CHECK(grid.cell_size() * static_cast<double>(grid.npix()) >= width * (1 - 1e-12));
  if (fringes > 2) CHECK(grid.cell_size() * static_cast<double>(grid.npix() - 2) < width * (1 + 1e-12));
  if (fringes > 10) CHECK(grid.cell_size() > 0.85 * maximum_cell_size(longest, grid.npix()));
}

TEST_CASE("an image without width or data without baselines has no optimal grid", "[coordinates][quick]") {
  CHECK_THROWS_AS(optimal_grid(0, 1e5), ValueError);
  CHECK_THROWS_AS(optimal_grid(1, 0), ValueError);
  CHECK_THROWS_AS(optimal_grid(std::numeric_limits<double>::quiet_NaN(), 1e5), ValueError);
}
