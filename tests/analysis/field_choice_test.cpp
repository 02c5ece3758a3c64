#include "catch.h"

#include <cmath>
#include <optional>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/rand.h>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/analysis/field/grid_choice.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/phase_center.h>

using namespace mpol;

TEST_CASE("the primary beam bounds the field where the antennas are known", "[analysis][quick]") {
  const auto u = at::linspace(2e4, 1e6, 50, torch::kFloat64);
  Visibilities data(Baselines::in_lambda(u, 0.5 * u), torch::ones({50}, torch::kComplexDouble),
                    torch::ones({50}, torch::kFloat64));
  data.set_frequencies(torch::tensor({230e9}, torch::kFloat64));
  const auto uv = summarize_uv(data.baselines());
  CHECK(widest_field(data, uv).width == Approx(2 * 206264.8 / uv.shortest).epsilon(1e-4));
  Observation observation;
  observation.telescope = "ALMA";
  data.set_observation(observation);
  CHECK(widest_field(data, uv).width == Approx(2 * PrimaryBeam::of_telescope("ALMA")->radius(0.1, 230e9)));
  CHECK(widest_field(data, uv).reason.find("12 m antennas of ALMA") != std::string::npos);
  CHECK(choose_field(data, uv).width <= widest_field(data, uv).width);
}

TEST_CASE("a field goes to flux far off the phase centre, and stays for flux about it", "[analysis]") {
  auto random = at::detail::createCPUGenerator(5);
  const auto q = at::exp(at::rand({1500}, random, torch::kFloat64) * 4) * 1.2e4;
  const auto angle = at::rand({1500}, random, torch::kFloat64) * 6.283185307179586;
  const auto u = q * angle.cos(), v = q * angle.sin();
  const auto source_at = [&](double east, double north) {
    const auto phase = displacement_phase(u, v, torch::tensor({east, north}, torch::kFloat64));
    return Visibilities(Baselines::in_lambda(u, v), (-(q / 3e5).square()).exp() * phase, at::full({1500}, 1e4, torch::kFloat64));
  };
  const auto place = [](const Visibilities& data) {
    return choose_field(data, summarize_uv(data.baselines()), FieldPlace::around_flux);
  };
  const auto far = source_at(-12, 9);
  const auto moved = place(far), whole = choose_field(far, summarize_uv(far.baselines()));
  CHECK(moved.center.east == Approx(-12).margin(0.5));
  CHECK(moved.center.north == Approx(9).margin(0.5));
  CHECK(1.5 * moved.width < whole.width);
  CHECK(moved.center_reason.find("West") != std::string::npos);
  CHECK(whole.center == SkyOffset());
  // Turned there, the field about the middle is as wide.
  const auto turned = with_center(far, moved.center.east, moved.center.north);
  CHECK(choose_field(turned, summarize_uv(turned.baselines())).width < 1.5 * moved.width);
  const auto near = place(source_at(0.5, -0.3));
  CHECK(near.center == SkyOffset());
  CHECK(near.center_reason.empty());
}

TEST_CASE("a grid is chosen with reasons, and keeps what is given", "[analysis]") {
  auto random = at::detail::createCPUGenerator(7);
  const auto u = (at::rand({1500}, random, torch::kFloat64) - 0.5) * 1e6,
             v = (at::rand({1500}, random, torch::kFloat64) - 0.5) * 1e6;
  const auto phase = displacement_phase(u, v, torch::tensor({-12.0, 9.0}, torch::kFloat64));
  const auto size = (-((u.square() + v.square()) / 9e10)).exp();
  const Visibilities data(Baselines::in_lambda(u, v), size * phase, at::full({1500}, 1e4, torch::kFloat64));
  const auto uv = summarize_uv(data.baselines());

  const auto all = choose_grid(data);
  CHECK(all.coords.cell_size() == suggested_cell_size(uv));
  CHECK_NOTHROW(all.coords.check_data_fit(data.baselines().max_abs_u(), data.baselines().max_abs_v()));
  CHECK_FALSE(all.cell_size_reason.empty());
  CHECK_FALSE(all.npix_reason.empty());
  CHECK_FALSE(all.center_reason.empty());
  CHECK(all.center.east == Approx(-12).margin(0.5));
  CHECK(all.center.north == Approx(9).margin(0.5));
  for (const double offset : {all.center.east, all.center.north}) {
    const double cells = offset / all.coords.cell_size();
    CHECK(cells == Approx(std::round(cells)).margin(1e-6));
  }

  const auto cells_given = choose_grid(data, 0.1);
  CHECK(cells_given.coords.cell_size() == 0.1);
  CHECK(cells_given.cell_size_reason.empty());
  CHECK_FALSE(cells_given.npix_reason.empty());
  const auto pixels_given = choose_grid(data, std::nullopt, 128);
  CHECK(pixels_given.coords.npix() == 128);
  CHECK(pixels_given.npix_reason.empty());
  CHECK(pixels_given.center == SkyOffset());
  const auto here = choose_grid(data, std::nullopt, std::nullopt, SkyOffset{0.25, 0});
  CHECK(here.center == SkyOffset{0.25, 0});
  CHECK(here.center_reason.empty());
  for (const double refused : {-1.0, 0.0, std::nan("")}) CHECK_THROWS_AS(choose_grid(data, refused), ValueError);

  const auto zeros = at::zeros({3}, torch::kFloat64);
  const Visibilities no_lengths(Baselines::in_lambda(zeros, zeros), torch::ones({3}, torch::kComplexDouble),
                                torch::ones({3}, torch::kFloat64));
  const auto none = choose_grid(no_lengths);
  CHECK(none.coords.cell_size() == 1);
  CHECK(none.cell_size_reason == "all baselines have length zero");
  CHECK(none.npix_reason == none.cell_size_reason);
}
