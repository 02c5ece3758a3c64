#include "catch.h"

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/rounded_down.h>
#include <mpol_cpp/core/units.h>

#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

GridCoords golden_coords(const Golden& golden) {
  return {golden("in_cell_size").item<double>(), golden("in_npix").item<std::int64_t>()};
}

Tensor vector(std::initializer_list<double> values) { return torch::tensor(at::ArrayRef<double>(values), torch::kFloat64); }

}  // namespace

TEST_CASE("grid coordinates equal MPoL's", "[coordinates][quick]") {
  const Golden golden("coords");
  const auto coords = golden_coords(golden);
  const auto check = [&](const char* key, const Tensor& value) {
    INFO(key);
    CHECK(relative_error(value, golden(key)) < 1e-14);
  };
  const auto scalar = [](double value) { return torch::tensor(value, torch::kFloat64); };
  check("out_dl", scalar(coords.dl()));
  check("out_dm", scalar(coords.dm()));
  check("out_du", scalar(coords.du()));
  check("out_dv", scalar(coords.dv()));
  check("out_l_centers", coords.l_centers());
  check("out_m_centers", coords.m_centers());
  check("out_u_centers", coords.u_centers());
  check("out_v_centers", coords.v_centers());
  check("out_u_edges", coords.u_edges());
  check("out_v_edges", coords.v_edges());
  check("out_q_max", scalar(coords.q_max()));
  check("out_max_uv_grid_value", scalar(coords.max_uv()));
  const auto image = coords.img_ext(), plane = coords.vis_ext();
  check("out_img_ext", vector({image[0], image[1], image[2], image[3]}));
  check("out_vis_ext", vector({plane[0], plane[1], plane[2], plane[3]}));
  check("out_vis_ext_Mlam", vector({plane[0], plane[1], plane[2], plane[3]}) * 1e-6);
  check("out_u_bin_min", coords.u_edges()[0]);
  check("out_v_bin_min", coords.v_edges()[0]);
  check("out_u_bin_max", coords.u_edges()[-1]);
  check("out_v_bin_max", coords.v_edges()[-1]);
  check("out_packed_u_centers_2D", coords.packed_u());
  check("out_packed_v_centers_2D", coords.packed_v());
  check("out_packed_q_centers_2D", coords.packed_q());
  check("out_packed_phi_centers_2D", coords.packed_phi());
  check("out_packed_x_centers_2D", coords.packed_x());
  check("out_packed_y_centers_2D", coords.packed_y());
  check("out_sky_x_centers_2D", coords.sky_x());
  check("out_sky_y_centers_2D", coords.sky_y());
}

TEST_CASE("grids are equal when cell size and pixels are", "[coordinates][quick]") {
  CHECK(GridCoords(0.01, 512) == GridCoords(0.01, 512));
  CHECK_FALSE(GridCoords(0.01, 510) == GridCoords(0.01, 512));
  CHECK_FALSE(GridCoords(0.011, 512) == GridCoords(0.01, 512));
}

TEST_CASE("two-dimensional coordinates are the outer products of the axes", "[coordinates][quick]") {
  const GridCoords coords(0.05, 30);
  const auto u = coords.u_centers(), v = coords.v_centers();
  CHECK(torch::equal(packed_to_ground(coords.packed_u()), u.unsqueeze(0).expand({30, 30})));
  CHECK(torch::equal(packed_to_ground(coords.packed_v()), v.unsqueeze(1).expand({30, 30})));
  CHECK(torch::equal(coords.packed_q(), torch::hypot(coords.packed_u(), coords.packed_v())));
  CHECK(torch::equal(coords.packed_phi(), torch::atan2(coords.packed_v(), coords.packed_u())));
  CHECK(torch::equal(packed_to_sky(coords.packed_x()), coords.sky_x()));
  CHECK(torch::equal(packed_to_sky(coords.packed_y()), coords.sky_y()));
}

TEST_CASE("equally spaced positions and the largest frequency of an image equal MPoL's", "[coordinates][quick]") {
  const Golden golden("utils");
  const auto width_and_count = golden("in_fftspace_width_n");  // from -width, without +width
  const double width = width_and_count[0].item<double>();
  const auto count = static_cast<std::int64_t>(width_and_count[1].item<double>());
  const auto positions = GridCoords(2 * width / static_cast<double>(count), count).l_centers() / units::arcsec;
  CHECK(relative_error(positions, golden("out_fftspace")) < 1e-13);
  const auto highest = dataset_coords().u_centers()[-1];  // (npix/2 - 1) du
  CHECK(relative_error(highest, golden("out_max_spatial_freq")) < 1e-13);
}

TEST_CASE("data fit exactly when they have a cell", "[coordinates][quick]") {
  const Golden golden("coords");
  const auto coords = golden_coords(golden);
  const auto factors = golden("in_fit_factors"), fits = golden("out_fits");
  for (std::int64_t i = 0; i < factors.numel(); ++i) {
    const double u = factors[i].item<double>() * coords.max_uv();
    INFO("factor " << factors[i].item<double>());
    CHECK(coords.data_fit(0.0, u) == (fits[i].item<std::int64_t>() != 0));
    CHECK(coords.data_fit(u, 0.0) == (fits[i].item<std::int64_t>() != 0));
  }
  CHECK(coords.uv_cell(coords.max_uv() * (1 - 1e-12)) == coords.npix() - 1);
  CHECK(coords.uv_cell(-coords.max_uv() * (1 - 1e-12)) == 1);
  CHECK_FALSE(coords.data_fit(coords.max_uv(), 0.0));
}

TEST_CASE("whatever fits has a cell inside the grid, to the last bit", "[coordinates][quick]") {
  const auto npix = GENERATE(2, 30, 64, 180, 4096);
  const GridCoords coords(0.0123, npix);
  double u = coords.max_uv();
  for (int i = 0; i < 100; ++i, u = std::nextafter(u, 0.0)) {
    if (!coords.data_fit(u, u)) continue;
    CHECK(coords.uv_cell(u) == npix - 1);
    CHECK(coords.uv_cell(-u) >= 0);
  }
  CHECK(coords.data_fit(coords.max_uv() * (1 - 1e-12), 0.0));
}

TEST_CASE("the maximum cell size is the largest that fits", "[coordinates][quick]") {
  const Golden golden("coords");
  const auto coords = golden_coords(golden);
  const double u = golden("out_max_uv_grid_value").item<double>();
  const double limit = maximum_cell_size(u, coords.npix());
  CHECK(limit == Approx(golden("out_correct_maximum_cell_size").item<double>()).epsilon(1e-14));
  CHECK(GridCoords(limit * (1 - 1e-12), coords.npix()).data_fit(u, u));
  CHECK_FALSE(GridCoords(limit * (1 + 1e-12), coords.npix()).data_fit(u, u));
  const double nyquist = golden("out_correct_nyquist_cell_size").item<double>();  // 1/(2u): half a cell too large
  CHECK(limit / (1 - 1.0 / static_cast<double>(coords.npix())) == Approx(nyquist).epsilon(1e-14));
  CHECK_FALSE(GridCoords(nyquist, coords.npix()).data_fit(u, u));
  const double of_mpol = golden("bug_maximum_cell_size").item<double>();
  CHECK_FALSE(GridCoords(of_mpol, coords.npix()).data_fit(u, u));
  CHECK_FALSE(GridCoords(0.51 * of_mpol, coords.npix()).data_fit(u, u));  // wrong by a factor of two
}

TEST_CASE("an unfit baseline is named with the limit and the remedy", "[coordinates][quick]") {
  const GridCoords coords(0.03, 180);
  try {
    coords.check_data_fit(5.2e6, 1.0);
    FAIL("no error");
  } catch (const DataError& error) {
    const std::string message = error.what();
    CHECK_THAT(message, ContainsSubstring("|u| = 5.2e+06"));
    CHECK_THAT(message, ContainsSubstring("use cell_size <"));
  }
}

TEST_CASE("the cell size that a message recommends is below the limit", "[coordinates][quick]") {
  for (const double limit : {0.19719, 0.19715, 0.1, 12345.0, 9.9999, 1e-7, 3.00005}) {
    const auto recommended = std::stod(mpol::rounded_down(limit));
    CHECK(recommended <= limit);
    CHECK(recommended > limit * (1 - 2e-3));
  }
  CHECK(mpol::rounded_down(0.08336567) == "0.08336");  // to the nearest it would be 0.08337
  CHECK_THROWS_WITH(GridCoords(0.03, 1), ContainsSubstring("use 2 or more"));
  CHECK_THROWS_WITH(GridCoords(0.03, 181), ContainsSubstring("use 180 or 182"));
}

TEST_CASE("bad grids are refused", "[coordinates][quick]") {
  CHECK_THROWS_AS(GridCoords(0.03, 181), ValueError);
  CHECK_THROWS_AS(GridCoords(0.03, 0), ValueError);
  CHECK_THROWS_AS(GridCoords(0.03, -2), ValueError);
  CHECK_THROWS_AS(GridCoords(0.0, 180), ValueError);
  CHECK_THROWS_AS(GridCoords(-1.0, 180), ValueError);
  CHECK_THROWS_AS(GridCoords(std::numeric_limits<double>::quiet_NaN(), 180), ValueError);
}

TEST_CASE("orders are each other's inverse and put the phase centre where they say", "[coordinates][quick]") {
  const auto npix = GENERATE(2, 4, 30, 64);
  const GridCoords coords(0.05, npix);
  const auto image = normal({2, npix, npix}, torch::kFloat64, 1);
  CHECK(torch::equal(packed_to_sky(sky_to_packed(image)), image));
  CHECK(torch::equal(sky_to_packed(packed_to_sky(image)), image));
  CHECK(torch::equal(packed_to_ground(ground_to_packed(image)), image));
  CHECK(coords.sky_x()[npix / 2][npix / 2 - 1].item<double>() == 0.0);
  CHECK(coords.sky_y()[npix / 2][npix / 2 - 1].item<double>() == 0.0);
  CHECK(coords.packed_x()[0][0].item<double>() == 0.0);
}
