#include "catch.h"

#include <ATen/ops/linspace.h>

#include <mpol_cpp/analysis/field_choice.h>

using namespace mpol;

TEST_CASE("the primary beam bounds the field where the antennas are known", "[analysis][quick]") {
  CHECK(dish_diameter("ALMA", 15) == 12.0);
  CHECK(dish_diameter("ALMA", 9) == 7.0);
  CHECK(dish_diameter("evla", 40) == 25.0);
  CHECK_FALSE(dish_diameter("CARMA", 8));
  CHECK_FALSE(dish_diameter("", 8));
  const auto u = at::linspace(2e4, 1e6, 50, torch::kFloat64);
  Visibilities data(Baselines::in_lambda(u, 0.5 * u), torch::ones({50}, torch::kComplexDouble),
                    torch::ones({50}, torch::kFloat64));
  data.set_frequencies(torch::tensor({230e9}, torch::kFloat64));
  const auto uv = summarise_uv(data.baselines());
  CHECK(widest_field(data, uv).width == Approx(2 * 206264.8 / uv.shortest).epsilon(1e-4));
  Observation observation;
  observation.telescope = "ALMA";
  data.set_observation(observation);
  CHECK(widest_field(data, uv).width == Approx(1.8 * 25.3).epsilon(0.01));
  CHECK(choose_field(data, uv).width <= widest_field(data, uv).width);
}
