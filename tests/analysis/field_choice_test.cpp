#include "catch.h"

#include <cmath>
#include <optional>
#include <string>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/analysis/field/grid_choice.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/displacement.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/phase_center.h>

using namespace mpol;

namespace {

std::string warning_of(const Visibilities& data, const GridCoords& coords) {
  return field_warning(data, summarize_uv(data.baselines()), coords);
}

}  // namespace

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

namespace {

/// Baselines in all directions, of such lengths.
Baselines baselines_of(const torch::Tensor& lengths) {
  auto random = at::detail::createCPUGenerator(9);
  const auto angle = at::rand(lengths.sizes(), random, torch::kFloat64) * 6.283185307179586;
  return Baselines::in_lambda(lengths * angle.cos(), lengths * angle.sin());
}

torch::Tensor lengths_between(double low, double high, std::int64_t count) {
  return at::exp(at::linspace(std::log(low), std::log(high), count, torch::kFloat64));
}

/// A Gaussian of 1 Jy at the phase centre, 1.7e5/q arcsec wide at half maximum, as all of these baselines see it.
Visibilities gaussian(const Baselines& baselines, double q, double weight) {
  const auto [u, v] = baselines.channel(0);
  const auto data = (-(u.square() + v.square()) / (q * q)).exp().to(torch::kComplexDouble);
  return {baselines, data, at::full(data.sizes(), weight, torch::kFloat64)};
}

}  // namespace

TEST_CASE("the field of a bright source goes by its size, that of a faint one by the shortest baseline", "[analysis]") {
  const auto baselines = baselines_of(lengths_between(5e3, 1e6, 1500));
  const auto uv = summarize_uv(baselines);
  const double recovered = 0.6 * 206264.8 / 5e3;
  const auto bright = choose_field(gaussian(baselines, 3e5, 1e4), uv);
  CHECK(bright.reason.find("six times") != std::string::npos);
  CHECK(bright.width > 3);  // six times about the width at half maximum
  CHECK(bright.width < 0.4 * recovered);
  const auto faint = choose_field(gaussian(baselines, 3e5, 0.1), uv);
  CHECK(faint.width == Approx(recovered).epsilon(0.03));
  // A source as large as what the shortest baseline sees.
  const auto large = choose_field(gaussian(baselines, 1.2e4, 1e4), uv);
  CHECK(large.width >= 0.97 * recovered);

  const auto data = gaussian(baselines, 3e5, 1e4);
  const auto field_of = [](double width) { return GridCoords(width / 256, 256); };
  CHECK(warning_of(data, field_of(bright.width)).empty());
  CHECK(warning_of(data, field_of(0.5 * bright.width)).find("shortest baseline") != std::string::npos);
  // The pixels that it names hold those scales, also where they are more than are chosen.
  CHECK(warning_of(data, GridCoords(0.005, 128)).find("--npix 5000 holds") != std::string::npos);
  CHECK_FALSE(warning_of(gaussian(baselines, 3e5, 0.1), field_of(bright.width)).empty());
  CHECK(warning_of(gaussian(baselines, 3e5, 0.1), field_of(1.1 * recovered)).empty());
}

TEST_CASE("a few baselines between antennas of one station do not make the field of an array wide", "[analysis][quick]") {
  const auto stations = lengths_between(1e9, 8e9, 800);
  const auto few = summarize_uv(baselines_of(at::cat({lengths_between(5e4, 6e4, 60), stations})));
  CHECK(few.shortest == Approx(5e4));
  CHECK(few.shortest_of_array == Approx(1e9).epsilon(0.03));
  const auto many = summarize_uv(baselines_of(at::cat({lengths_between(5e4, 6e4, 600), stations})));
  CHECK(many.shortest_of_array == many.shortest);
  const auto dense = summarize_uv(baselines_of(lengths_between(5e4, 8e9, 800)));
  CHECK(dense.shortest_of_array == dense.shortest);
  CHECK(summarize_uv(baselines_of(at::zeros({3}, torch::kFloat64))).shortest_of_array == 0);

  auto data = gaussian(baselines_of(at::cat({lengths_between(5e4, 6e4, 60), stations})), 4e9, 1e4);
  const auto field = choose_field(data, few);
  CHECK(field.width < 2.1 * 206264.8 / 1e9);
  CHECK(field.reason.find("without the few baselines far below") != std::string::npos);
  CHECK(warning_of(data, GridCoords(field.width / 128, 128)).empty());
  // The antennas' beam is of no use where no baseline shows anything on its scale.
  data = gaussian(baselines_of(stations), 4e9, 1e4);
  data.set_frequencies(torch::tensor({230e9}, torch::kFloat64));
  Observation observation;
  observation.telescope = "ALMA";
  data.set_observation(observation);
  CHECK(choose_field(data, summarize_uv(data.baselines())).width < 2.1 * 206264.8 / 1e9);
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
