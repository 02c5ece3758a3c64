#include "catch.h"

#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adam.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/distributed/store_communicator.h>
#include <mpol_cpp/likelihoods/shared/slab_likelihood.h>
#include <mpol_cpp/objective/slab_objective.h>

#include "demands.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// One image, whole and in slabs.
struct SlabProblem {
  GridCoords grid;
  std::int64_t nchan;
  torch::Dtype dtype;
  Visibilities visibilities = random_visibilities(grid, nchan, 7);
  NormalOperator whole = NormalOperator::of(grid, visibilities, ChannelMap::cube(nchan));
  Tensor base = normal({nchan, grid.npix(), grid.npix()}, torch::kFloat64, 3).to(dtype);
  std::vector<Term> terms = {terms::sparsity(1e-2), terms::tv_image(2e-2), terms::tv_slope(1e-2), terms::tsv(1e-2),
                             terms::entropy(1e-3, 1e-2, 0.3)};

  GriddedNet model() const { return GriddedNet(GriddedNetOptions(grid).base_cube(base.clone()).dtype(dtype)); }
  Objective objective() const { return Objective(ExactLikelihood(whole), terms); }
  SlabObjective slabs(Communicator& ranks) const { return SlabObjective(SlabOperator(whole, as_shared(ranks)), terms); }
};

}  // namespace

TEST_CASE("all-to-all gives each rank what the others have for it", "[distributed][quick]") {
  const auto size = GENERATE(std::int64_t{1}, std::int64_t{2}, std::int64_t{4});
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64, torch::kComplexDouble);
  const auto part = [&](std::int64_t from, std::int64_t to) {  // from 0 rows upwards
    return (at::arange(6 * ((from + to) % 3), torch::kFloat64) + static_cast<double>(10 * from + to)).view({-1, 2, 3}).to(dtype);
  };
  run_as_threads(size, [&](Communicator& ranks) {
    std::vector<Tensor> sent, wanted;
    for (std::int64_t other = 0; other < size; ++other) {
      sent.push_back(part(ranks.rank(), other));
      wanted.push_back(part(other, ranks.rank()));
    }
    demand(all_to_all(ranks, sent).equal(at::cat(wanted)), "other rows");
    sent.pop_back();
    try {
      all_to_all(ranks, sent);
    } catch (const ShapeError&) {
      return;
    }
    throw DataError("a missing part is not refused");
  });
}

TEST_CASE("slabs get the rows of their neighbors, and give back what was found for them", "[distributed][quick]") {
  const auto npix = GENERATE(std::int64_t{11}, std::int64_t{4}, std::int64_t{2});  // uneven; thinner than a halo; empty ones
  const auto image = normal({2, npix, 5}, torch::kFloat64, 1);
  run_as_threads(3, [&](Communicator& ranks) {
    const RowSlabs slabs(npix, as_shared(ranks));
    const auto own = slabs.slab_of(image);
    const auto held = slabs.rows_with_halo(ranks.rank(), 2);
    demand(slabs.with_halo(own, 2).equal(image.narrow(1, held.begin, held.size())), "other rows around a slab");
    const auto whole = slabs.gather(own);
    demand(whole.defined() == ranks.is_first() && (!whole.defined() || whole.equal(image)), "another whole");
    demand(slabs.to_rows(slabs.to_columns(own)).equal(own), "rows that went to columns come back otherwise");
    const auto columns = share_of(5, ranks.rank(), 3);
    demand(slabs.to_columns(own).equal(image.narrow(2, columns.begin, columns.size())), "other columns");
    // <halo(x), y> = <x, add(y)>
    const auto y = normal({2, held.size(), 5}, torch::kFloat64, 20 + static_cast<std::uint64_t>(ranks.rank()));
    std::vector<double> products = {(slabs.with_halo(own, 2) * y).sum().item<double>(),
                                    (own * slabs.add_halo(y, 2)).sum().item<double>()};
    ranks.sum(products);
    demand(std::abs(products[0] - products[1]) < 1e-12 * (1 + std::abs(products[0])), "no adjoint");
  });
}

TEST_CASE("the operator of slabs is that of the image", "[distributed][quick]") {
  const auto npix = GENERATE(std::int64_t{16}, std::int64_t{6});
  const SlabProblem problem{GridCoords(0.05, npix), 2, torch::kFloat64};
  const auto product = problem.whole.apply(problem.base);
  auto slope = at::zeros_like(problem.base);
  const auto value = problem.whole.value_and_gradient(problem.base, slope, Accumulate::overwrite).item<double>();
  run_as_threads(GENERATE(1, 2, 3, 8), [&](Communicator& ranks) {
    const SlabOperator own(problem.whole, as_shared(ranks));
    const auto slab = own.slabs().slab_of(problem.base);
    auto gradient = at::zeros_like(slab);
    std::vector<double> sum = {own.value_and_gradient(slab, gradient)};
    ranks.sum(sum);
    demand(std::abs(sum[0] - value) < 1e-12 * std::abs(value), "another chi squared");
    const auto found = own.slabs().gather(gradient), found_product = own.slabs().gather(own.apply(slab));
    demand(!found.defined() || gap_between(found, slope) < 1e-12, "another gradient");
    demand(!found.defined() || gap_between(found_product, product) < 1e-12, "another product");
  });
}

TEMPLATE_TEST_CASE("the objective of slabs and its gradient are those of the image", "[distributed][quick]", float, double) {
  const auto npix = GENERATE(std::int64_t{16}, std::int64_t{4});
  const SlabProblem problem{GridCoords(0.05, npix), 1, c10::CppTypeToScalarType<TestType>::value};
  const double tolerance = problem.dtype == torch::kFloat64 ? 1e-12 : 1e-6;
  auto model = problem.model();
  const auto wanted = problem.objective().evaluate(model);
  wanted.total.sum().backward();
  const auto table = wanted.table();
  const auto slope = model->base().grad();
  const auto sky = model->make_sky().detach();
  run_as_threads(GENERATE(1, 3, 6), [&](Communicator& ranks) {
    const auto own = problem.slabs(ranks);
    const auto& slabs = own.likelihood().slabs();
    const auto slab = slabs.slab_of(problem.base);
    auto gradient = at::zeros_like(slab);
    const auto values = own.value_and_gradient(slab, gradient);
    for (std::size_t column = 0; column < values.size(); ++column) {
      const auto value = table[static_cast<std::int64_t>(column)].template item<double>();
      demand(std::abs(values[column] - value) <= tolerance * std::abs(value), fmt::format("another value {}", column));
    }
    const auto found = slabs.gather(gradient), found_sky = slabs.gather(own.sky(slab));
    demand(!found.defined() || gap_between(found, slope) < tolerance,
           fmt::format("another gradient: {:g}", found.defined() ? gap_between(found, slope) : 0));
    demand(!found.defined() || gap_between(found_sky, sky) < tolerance, "another sky");
  });
}

namespace {

/// Forty steps of Adam. @return  the base pixels on the first rank
Tensor fit_in_slabs(const SlabProblem& problem, Communicator& ranks) {
  const auto own = problem.slabs(ranks);
  const auto& slabs = own.likelihood().slabs();
  auto slab = slabs.slab_of(problem.base).clone().requires_grad_();
  slab.mutable_grad() = at::zeros_like(slab);
  torch::optim::Adam adam(std::vector<Tensor>{slab}, torch::optim::AdamOptions(0.05));
  for (int epoch = 0; epoch < 40; ++epoch) {
    own.value_and_gradient(slab, slab.mutable_grad());
    adam.step();
  }
  return slabs.gather(slab.detach());
}

Tensor fit_of_whole(const SlabProblem& problem) {
  auto model = problem.model();
  const auto objective = problem.objective();
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.05));
  for (int epoch = 0; epoch < 40; ++epoch) {
    adam.zero_grad();
    objective.evaluate(model).total.sum().backward();
    adam.step();
  }
  return model->base().detach();
}

}  // namespace

TEMPLATE_TEST_CASE("a fit in slabs goes where one rank goes", "[distributed]", float, double) {
  const SlabProblem problem{GridCoords(0.05, 16), 1, c10::CppTypeToScalarType<TestType>::value};
  const bool is_double = problem.dtype == torch::kFloat64;
  // In float32 the whole image is computed in float32, and Adam makes that rounding larger: there one slab is the run of one
  // rank.
  const auto alone = single_rank();
  const auto wanted = is_double ? fit_of_whole(problem) : fit_in_slabs(problem, *alone);
  run_as_threads(GENERATE(2, 3, 5), [&](Communicator& ranks) {
    const auto found = fit_in_slabs(problem, ranks);
    if (!found.defined()) return;
    const auto error = gap_between(found, wanted);
    demand(error <= (is_double ? 1e-12 : 1e-6), fmt::format("pixels differ by {:g}", error));
  });
}

TEMPLATE_TEST_CASE("the likelihood of slabs serves the fit of one rank", "[distributed][quick]", float, double) {
  const SlabProblem problem{GridCoords(0.05, 16), 2, c10::CppTypeToScalarType<TestType>::value};
  const double tolerance = problem.dtype == torch::kFloat64 ? 1e-12 : 1e-6;
  const auto sky = problem.base.abs();
  ExactLikelihood exact(problem.whole);
  auto wanted = at::zeros_like(sky);
  const auto of_channels = exact->channel_values_and_gradient(sky, wanted, Accumulate::overwrite);
  const auto value = of_channels.sum().template item<double>();
  run_as_threads(3, [&](Communicator& ranks) {
    const auto own = std::make_shared<SlabOperator>(problem.whole, as_shared(ranks));
    if (!ranks.is_first()) return serve_slabs(*own);
    SlabLikelihood likelihood(own);
    auto gradient = at::zeros_like(sky);
    likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite);
    const auto twice = likelihood->value_and_gradient(sky, gradient, Accumulate::add).template item<double>();
    auto leaf = sky.clone().requires_grad_();
    likelihood->chi_squared(leaf).sum().backward();
    auto again = at::zeros_like(sky);
    const auto own_values = likelihood->channel_values_and_gradient(sky, again, Accumulate::overwrite);
    demand(likelihood->tells_channels() && gap_between(own_values, of_channels) < tolerance, "other values of channels");
    likelihood->release();
    demand(std::abs(twice - value) <= tolerance * std::abs(value), "another chi squared");
    demand(gap_between(gradient, 2 * wanted) < tolerance && gap_between(leaf.grad(), wanted) < tolerance, "another gradient");
    demand(likelihood->normalizer() == exact->normalizer() && likelihood->samples() == exact->samples(), "other counts");
    try {
      likelihood->value_and_gradient(sky, gradient, Accumulate::add);
    } catch (const ValueError&) {
      return;
    }
    throw DataError("an evaluation after the release is not refused");
  });
}

TEST_CASE("what slabs cannot do is refused", "[distributed][quick]") {
  const SlabProblem problem{GridCoords(0.05, 16), 1, torch::kFloat64};
  const auto alone = single_rank();
  const auto with = [&](const Term& term) { return SlabObjective(SlabOperator(problem.whole, alone), {term}); };
  CHECK_THROWS_WITH(with(terms::edge_clamp(1)), ContainsSubstring("terms of neighboring pixels: sparsity, tv, tsv"));
  CHECK_THROWS_WITH(with(terms::sparsity(1).with_weights({1, 2})), ContainsSubstring("one problem, of one weight"));
  CHECK_THROWS_AS(RowSlabs(0, alone), ValueError);
  const SlabOperator own(problem.whole, alone);
  CHECK_THROWS_AS(own.apply(problem.base.narrow(1, 0, 3)), ShapeError);
  CHECK_THROWS_AS(own.apply(problem.base.to(torch::kFloat32)), ShapeError);
}
