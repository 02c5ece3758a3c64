#include "catch.h"

#include <memory>
#include <vector>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/batched_likelihood.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords batch_grid(0.05, 16);

/// Likelihoods of three kinds, each of other data.
std::vector<std::shared_ptr<Likelihood>> three_likelihoods() {
  const auto channels = ChannelMap::cube(2);
  return {GriddedLikelihood(random_dataset(batch_grid, 2, 3)).ptr(),
          ExactLikelihood(batch_grid, random_visibilities(batch_grid, 2, 7), channels).ptr(),
          LooseLikelihood(batch_grid, random_visibilities(batch_grid, 2, 17), channels).ptr()};
}

}  // namespace

TEMPLATE_TEST_CASE("a batch of likelihoods says of each image what its own says", "[losses][quick]", float, double) {
  const auto parts = three_likelihoods(), alone = three_likelihoods();  // what was called may change what the next call gives
  BatchedLikelihood batch(parts);
  const auto sky = uniform({3, 2, 16, 16}, torch::kFloat64, 5).to(dtype_of<TestType>());
  auto overwritten = at::ones_like(sky), added = at::ones_like(sky);
  const auto chi_squared = batch->chi_squared(sky);
  const auto value = batch->value_and_gradient(sky, overwritten, Accumulate::overwrite);
  batch->value_and_gradient(sky, added, Accumulate::add);
  REQUIRE(chi_squared.sizes() == at::IntArrayRef{3});
  double normalizer = 0;
  std::int64_t samples = 0, visibilities = 0;
  for (std::int64_t k = 0; k < 3; ++k) {
    CAPTURE(k);
    auto& part = *alone[static_cast<std::size_t>(k)];
    auto gradient = at::ones_like(sky[k]), sum = at::ones_like(sky[k]);
    CHECK(same(part.chi_squared(sky[k]).to(torch::kFloat64), chi_squared[k].to(torch::kFloat64)));
    CHECK(same(part.value_and_gradient(sky[k], gradient, Accumulate::overwrite), value[k]));
    part.value_and_gradient(sky[k], sum, Accumulate::add);
    CHECK(same(gradient, overwritten[k]));
    CHECK(same(sum, added[k]));
    normalizer += part.normalizer();
    samples += part.samples();
    visibilities += part.visibilities_count();
    CHECK(batch->of_problems()[static_cast<std::size_t>(k)] == parts[static_cast<std::size_t>(k)].get());
  }
  CHECK(batch->normalizer() == normalizer);
  CHECK(batch->samples() == samples);
  CHECK(batch->visibilities_count() == visibilities);
  CHECK(batch->is_quadratic());
  CHECK(batch->name() == "batched");
  CHECK_FALSE(batch->cells());
}

TEST_CASE("a batch's chi^2 has the gradient that it gives, also by second derivatives", "[losses][quick]") {
  BatchedLikelihood batch(three_likelihoods());
  const auto sky = uniform({3, 2, 16, 16}, torch::kFloat64, 5).requires_grad_();
  auto gradient = torch::empty_like(sky);
  batch->value_and_gradient(sky.detach(), gradient, Accumulate::overwrite);
  CHECK(relative_error(torch::autograd::grad({batch->chi_squared(sky).sum()}, {sky})[0], gradient) < 1e-12);
}

TEST_CASE("a batch's state is that of its likelihoods, and a copy is a batch of copies", "[losses][quick]") {
  const auto channels = ChannelMap::cube(1);
  const auto exact = ExactLikelihood(batch_grid, random_visibilities(batch_grid, 1, 7), channels);
  const auto other = ExactLikelihood(batch_grid, random_visibilities(batch_grid, 1, 17), channels);
  BatchedLikelihood batch(std::vector<std::shared_ptr<Likelihood>>{exact.ptr(), other.ptr()});
  CHECK(batch->name() == "exact");
  CHECK(batch->named_buffers().contains("problem_1.kernel"));

  const auto sky = uniform({2, 1, 16, 16}, torch::kFloat32, 5);
  auto gradient = at::zeros_like(sky);
  batch->value_and_gradient(sky, gradient, Accumulate::overwrite);
  const auto state = batch->working_state();
  CHECK(state.contains("problem_0.anchors"));
  const auto copy = with_interface<Likelihood>(batch->clone(), "Likelihood");
  copy->load_working_state(state);
  auto again = at::zeros_like(sky);
  const auto value = batch->value_and_gradient(sky, gradient, Accumulate::overwrite);
  CHECK(same(copy->value_and_gradient(sky, again, Accumulate::overwrite), value));
  CHECK(same(again, gradient));
  copy->as_module().to(torch::kMeta);
  CHECK(exact->named_buffers()["kernel"].is_cpu());
  CHECK_THROWS_AS(batch->load_working_state({{"problem_2.anchors", sky}}), FileError);
  CHECK_THROWS_AS(batch->load_working_state({{"anchors", sky}}), FileError);
}

TEST_CASE("what is no batch is refused", "[losses][quick]") {
  const auto parts = three_likelihoods();
  using Parts = std::vector<std::shared_ptr<Likelihood>>;
  CHECK_THROWS_AS(BatchedLikelihood(Parts{}), ValueError);
  CHECK_THROWS_AS(BatchedLikelihood(Parts{parts[0], nullptr}), ValueError);
  CHECK_THROWS_AS(BatchedLikelihood(Parts{parts[0], BatchedLikelihood(parts).ptr()}), ValueError);
  const GridCoords other(0.04, 16);
  CHECK_THROWS_AS(BatchedLikelihood(Parts{parts[0], GriddedLikelihood(random_dataset(other, 2, 3)).ptr()}), ValueError);
  BatchedLikelihood batch(parts);
  const auto sky = uniform({2, 2, 16, 16}, torch::kFloat64, 5);
  CHECK_THROWS_AS(batch->chi_squared(sky), ShapeError);
  auto gradient = at::zeros_like(sky);
  CHECK_THROWS_AS(batch->value_and_gradient(sky, gradient, Accumulate::add), ShapeError);
}
