#include "catch.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/regularizers/regularizers.h>

#include "compare.h"
#include "golden.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("image regularisers and their gradients equal MPoL's", "[losses][quick]", float, double) {
  const Golden golden("losses_image");
  const auto cube = golden("in_cube_sky").to(dtype_of<TestType>());
  const auto offset_cube = cube + golden("in_signed_offset").to(dtype_of<TestType>());
  const auto mask = golden("in_mask_sky").to(torch::kBool);
  const double prior = golden("in_prior_intensity").item<double>(), flux = golden("in_tot_flux").item<double>();
  const auto check = [&](const std::string& key, const Tensor& at, double float_gradient, const auto& loss) {
    INFO(key);
    CHECK(relative_error(loss(at), golden("out_" + key)) < tolerance<TestType>(1e-12, 1e-6));
    CHECK(relative_error(gradient_of(loss, at), golden("out_" + key + "_gradient")) < tolerance<TestType>(1e-11, float_gradient));
  };
  check("entropy", cube, 1e-6, [&](const Tensor& x) { return losses::entropy(x, prior, flux); });
  check("tv_image", cube, 1e-5, [](const Tensor& x) { return losses::tv_image(x); });
  check("tv_channel", cube, 3e-4, [](const Tensor& x) { return losses::tv_channel(x); });
  check("tsv", cube, 1e-6, [](const Tensor& x) { return losses::tsv(x); });
  check("sparsity", offset_cube, 1e-6, [](const Tensor& x) { return losses::sparsity(x); });
  check("sparsity_masked", offset_cube, 1e-6, [&](const Tensor& x) { return losses::sparsity(x, mask); });
  check("edge_clamp", offset_cube, 1e-6, [](const Tensor& x) { return losses::edge_clamp(x); });

  const double bound = tolerance<TestType>(1e-12, 1e-6);
  CHECK(relative_error(losses::tv_image(cube, 1e-4), golden("out_tv_image_eps1e-4")) < bound);
  CHECK(relative_error(losses::tv_image(torch::ones_like(cube)), golden("out_tv_image_of_constant")) < bound);
  CHECK(relative_error(losses::entropy(cube, prior), golden("out_entropy_default_tot_flux")) < bound);
}

TEST_CASE("total variations are the sums that their formulas name", "[losses][quick]") {
  const std::int64_t npix = 9;
  const auto cube = normal({3, npix, npix}, torch::kFloat64, 11).abs();
  const auto at = [&](std::int64_t c, std::int64_t i, std::int64_t j) { return cube[c][i][j].item<double>(); };
  double tv = 0, tsv = 0, across = 0;
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t i = 0; i + 1 < npix; ++i) {
      for (std::int64_t j = 0; j + 1 < npix; ++j) {
        const double squares = std::pow(at(c, i + 1, j) - at(c, i, j), 2) + std::pow(at(c, i, j + 1) - at(c, i, j), 2);
        tv += std::sqrt(squares + 1e-6);
        tsv += squares;
      }
    }
  }
  for (std::int64_t c = 0; c + 1 < 3; ++c) {
    for (std::int64_t i = 0; i < npix; ++i) {
      for (std::int64_t j = 0; j < npix; ++j) across += std::sqrt(std::pow(at(c + 1, i, j) - at(c, i, j), 2) + 1e-6);
    }
  }
  double slopes = 0;
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t i = 1; i + 1 < npix; ++i) {
      for (std::int64_t j = 1; j + 1 < npix; ++j) {
        const double rows = at(c, i + 1, j) - 2 * at(c, i, j) + at(c, i - 1, j);
        const double columns = at(c, i, j + 1) - 2 * at(c, i, j) + at(c, i, j - 1);
        const double mixed = at(c, i + 1, j + 1) - at(c, i + 1, j) - at(c, i, j + 1) + at(c, i, j);
        slopes += std::sqrt(rows * rows + columns * columns + 2 * mixed * mixed + 1e-6);
      }
    }
  }
  CHECK(losses::tv_slope(cube, 1e-6).item<double>() == Approx(slopes).epsilon(1e-13));
  CHECK(losses::tv_image(cube, 1e-6).item<double>() == Approx(tv).epsilon(1e-13));
  CHECK(losses::tsv(cube).item<double>() == Approx(tsv).epsilon(1e-13));
  CHECK(losses::tv_channel(cube, 1e-6).item<double>() == Approx(across).epsilon(1e-13));
}

TEST_CASE("entropy is measured in units of the flux that is given, not of the image's as in MPoL v0.1", "[losses][quick]") {
  const Golden golden("losses_image");
  const auto cube = golden("in_cube_sky");
  const double prior = golden.number("in_prior_intensity"), flux = golden.number("in_tot_flux");
  const double value = losses::entropy(cube, prior, flux).item<double>();
  CHECK(losses::entropy(cube, prior, 2 * flux).item<double>() == Approx(value / 2).epsilon(1e-13));
  CHECK(std::abs(value / golden.number("bug_v01_entropy") - 1) > 0.1);
}

TEST_CASE("entropy of empty pixels is zero with a finite gradient", "[losses][quick]") {
  const Golden golden("losses_image");
  const double prior = golden("in_prior_intensity").item<double>(), flux = golden("in_tot_flux").item<double>();
  auto cube = golden("in_cube_sky").clone();
  cube.narrow(1, 0, 4).narrow(2, 0, 4).zero_();
  const auto loss = [&](const Tensor& x) { return losses::entropy(x, prior, flux); };
  CHECK(relative_error(loss(cube), golden("out_correct_entropy_corner_zero")) < 1e-12);
  const auto gradient = gradient_of(loss, cube);
  CHECK(gradient.isfinite().all().item<bool>());
  const double at_floor = (std::log(losses::entropy_gradient_floor / prior) + 1) / flux;
  CHECK(gradient[0][0][0].item<double>() == Approx(at_floor).epsilon(1e-12));
}

TEST_CASE("entropy refuses what has no logarithm", "[losses][quick]") {
  CHECK_THROWS_AS(losses::entropy(torch::full({1, 4, 4}, -1e-3), 1e-4), DataError);
  CHECK_THROWS_AS(losses::entropy(torch::ones({1, 4, 4}), 0.0), ValueError);
  CHECK_THROWS_AS(losses::entropy(torch::ones({1, 4, 4}), 1e-4, 0.0), ValueError);
}

TEST_CASE("gradients of the regularisers agree with finite differences", "[losses][quick]") {
  const GridCoords coords(0.05, 14);
  const auto cube = random_image(coords, 3, torch::kFloat64, 1), direction = normal({3, 14, 14}, torch::kFloat64, 2);
  const auto check = [&](const char* name, const auto& loss) {
    INFO(name);
    CHECK(finite_difference_error(loss, cube, direction) < 1e-7);
  };
  check("sparsity", [](const Tensor& x) { return losses::sparsity(x); });
  check("tv_image", [](const Tensor& x) { return losses::tv_image(x, 1e-3); });
  check("tv_channel", [](const Tensor& x) { return losses::tv_channel(x, 1e-3); });
  check("tsv", [](const Tensor& x) { return losses::tsv(x); });
  check("entropy", [](const Tensor& x) { return losses::entropy(x, 0.3, 2.0); });
  check("edge_clamp", [](const Tensor& x) { return losses::edge_clamp(x); });
}

TEST_CASE("regularisers do not change under what their definition ignores", "[losses][quick]") {
  const auto cube = normal({3, 12, 12}, torch::kFloat64, 3).abs();
  CHECK(losses::tv_image(cube + 5.0).item<double>() == Approx(losses::tv_image(cube).item<double>()).epsilon(1e-12));
  const auto plane = at::arange(12, torch::kFloat64).view({12, 1}) * 0.3 - at::arange(12, torch::kFloat64) * 0.7;
  CHECK(losses::tv_slope(cube + plane).item<double>() == Approx(losses::tv_slope(cube).item<double>()).epsilon(1e-12));
  CHECK(losses::tsv(cube.transpose(1, 2)).item<double>() == Approx(losses::tsv(cube).item<double>()).epsilon(1e-12));
  CHECK(losses::tv_channel(cube.flip({0})).item<double>() == Approx(losses::tv_channel(cube).item<double>()).epsilon(1e-12));
  CHECK(losses::edge_clamp(cube.flip({1, 2})).item<double>() == Approx(losses::edge_clamp(cube).item<double>()).epsilon(1e-12));
  CHECK(losses::tv_channel(cube.narrow(0, 0, 1)).item<double>() == 0.0);
}

TEST_CASE("each problem of a batch has its own value", "[losses][quick]") {
  const auto batch = normal({2, 2, 3, 8, 8}, torch::kFloat64, 4).abs();
  const auto check = [&](const auto& loss) {
    const auto together = loss(batch);
    CHECK(together.sizes() == at::IntArrayRef({2, 2}));
    CHECK(together[1][0].template item<double>() == Approx(loss(batch[1][0]).template item<double>()).epsilon(1e-14));
  };
  check([](const Tensor& x) { return losses::sparsity(x); });
  check([](const Tensor& x) { return losses::tv_image(x); });
  check([](const Tensor& x) { return losses::tv_channel(x); });
  check([](const Tensor& x) { return losses::tsv(x); });
  check([](const Tensor& x) { return losses::entropy(x, 1e-2); });
  check([](const Tensor& x) { return losses::edge_clamp(x); });
}

TEST_CASE("cubes without the three image dimensions are refused", "[losses][quick]") {
  CHECK_THROWS_AS(losses::tv_image(torch::ones({4, 4})), ShapeError);
  CHECK_THROWS_AS(losses::tv_image(torch::ones({1, 1, 4})), ShapeError);
  CHECK_THROWS_AS(losses::sparsity(torch::ones({4})), ShapeError);
  CHECK_THROWS_AS(losses::tv_image(torch::ones({1, 4, 4}), 0.0), ValueError);
  CHECK_THROWS_AS(losses::tv_slope(torch::ones({4, 4})), ShapeError);
  CHECK(losses::tv_slope(torch::ones({1, 2, 2})).item<double>() == 0);
}

TEMPLATE_TEST_CASE("the power spectrum prior and its gradient equal MPoL's", "[losses][quick]", float, double) {
  const Golden golden("losses_fourier"), dataset("dataset");
  const GridCoords coords(dataset("in_cell_size").item<double>(), dataset("in_npix").item<std::int64_t>());
  const double length = golden("in_psd_length_arcsec").item<double>();
  const auto visibilities = golden("in_vis_packed").to(complex_dtype_of<TestType>());
  const auto loss = [&](const Tensor& v) { return losses::psd(v, coords, length); };
  const double bound = tolerance<TestType>(1e-12, 1e-5);
  CHECK(relative_error(loss(visibilities), golden("out_psd")) < bound);
  CHECK(relative_error(gradient_of(loss, visibilities), golden("out_psd_gradient_wrt_vis")) < bound);
  CHECK(relative_error(losses::inverse_expected_power(coords, length).expand_as(golden("out_psd_gradient_wrt_psd")),
                       golden("out_psd_gradient_wrt_psd")) < bound);

  const double q_max = golden("in_uv_sparsity_q_max").item<double>();
  const auto sparsity = [&](const Tensor& v) { return losses::uv_sparsity(v, coords, q_max); };
  CHECK(relative_error(sparsity(visibilities), golden("out_correct_uv_sparsity")) < bound);
  CHECK(relative_error(gradient_of(sparsity, visibilities), golden("out_correct_uv_sparsity_gradient")) < bound);
}

TEST_CASE("float64 has power spectra of up to eight cells", "[losses][quick]") {
  const GridCoords coords(0.05, 64);
  const double length = 8 * coords.cell_size(), l = length * units::arcsec;
  const auto logarithm = coords.packed_q().square() * (2 * units::pi * units::pi * l * l) - std::log(2 * units::pi * l * l);
  CHECK(relative_error(losses::inverse_expected_power(coords, length).log(), logarithm) < 1e-13);
  // Visibilities as small as the prior expects them: each counts 1.
  const auto expected = (logarithm * -0.5).exp().to(torch::kComplexDouble).unsqueeze(0);
  CHECK(losses::psd(expected, coords, length).item<double>() == Approx(64 * 64).epsilon(1e-10));
}

TEST_CASE("a power spectrum that overflows names the largest usable scale", "[losses][quick]") {
  const GridCoords coords(0.05, 64);
  CHECK_THROWS_AS(losses::inverse_expected_power(coords, 0.0), ValueError);
  const auto refusal = [&](double length, torch::Dtype dtype) -> std::string {
    try {
      losses::inverse_expected_power(coords, length, dtype);
    } catch (const ValueError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(refusal(10.0, torch::kFloat64), ContainsSubstring("overflows beyond 0.4026 arcsec in Double"));
  CHECK_THAT(refusal(8 * 0.05, torch::kFloat32), ContainsSubstring("overflows beyond 0.1233 arcsec in Float"));
  CHECK_THAT(refusal(8 * 0.05, torch::kFloat32), ContainsSubstring("float64 up to 0.4026"));
  CHECK(refusal(0.12, torch::kFloat32) == "no error");
  const auto visibilities = at::ones({1, 64, 64}, torch::kComplexFloat);
  CHECK_THROWS_AS(losses::psd(visibilities, coords, 8 * 0.05), ValueError);
}
