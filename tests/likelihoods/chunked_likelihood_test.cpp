#include "catch.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/chunked_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/serialize/array_room.h>

#include "compare.h"
#include "random.h"
#include "temporary_folder.h"
#include "tight_allocator.h"
#include "train/problems.h"
#include "warnings.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords chunk_grid(0.05, 16);
constexpr auto all_residencies = {DataResidency::device, DataResidency::host, DataResidency::disk};

/// Two data channels in metres for one image, so that everything that a file may have passes through a move.
Visibilities chunk_data() {
  const auto own = random_visibilities(chunk_grid, 2, 7);
  const auto frequencies = torch::tensor({230e9, 231e9}, torch::kFloat64);
  const auto metres = [](const Tensor& lambda) { return lambda[0] * 1.29e-3; };
  Visibilities data(Baselines::in_metres(metres(own.baselines().u()), metres(own.baselines().v()), frequencies), own.data(),
                    own.weights());
  data.set_frequencies(frequencies);
  return data;
}

ChunkedLikelihood in_chunks(const ChunkedLikelihoodOptions& options) {
  return ChunkedLikelihood(chunk_grid, chunk_data(), ChannelMap::continuum(2), options);
}

std::pair<Tensor, Tensor> evaluate_chunks(Likelihood& likelihood, const Tensor& sky) {
  auto gradient = torch::full_like(sky, 7.0);
  const auto value = likelihood.value_and_gradient(sky, gradient, Accumulate::overwrite);
  return {value, gradient};
}

}  // namespace

TEMPLATE_TEST_CASE("chunks add up to the whole, wherever the visibilities are", "[losses][chunks][quick]", float, double) {
  constexpr auto dtype = c10::CppTypeToScalarType<TestType>::value;
  constexpr double tolerance = std::is_same_v<TestType, float> ? 2e-5 : 1e-9;
  const auto noise = GENERATE(NoiseModel::gaussian(), NoiseModel::student(3), NoiseModel::huber(1.5));
  CAPTURE(to_string(noise.kind));
  const NufftOptions transform{std::is_same_v<TestType, float> ? 1e-6 : 1e-11};
  auto whole = NoiseLikelihood(chunk_grid, chunk_data(), ChannelMap::continuum(2), noise, transform);
  const auto sky = uniform({3, 1, 16, 16}, dtype, 5);  // three problems
  const auto [expected, slope] = evaluate_chunks(*whole, sky);
  for (const std::int64_t chunk : {1, 7, 300, 800, 5000}) {
    if (chunk == 1 && noise.kind != NoiseModel::Kind::gaussian) continue;
    auto chunks = in_chunks(ChunkedLikelihoodOptions().noise(noise).chunk(chunk).transform(transform));
    CHECK(chunks->chunk() == std::min<std::int64_t>(chunk, 800));
    const auto [value, gradient] = evaluate_chunks(*chunks, sky);
    CHECK(relative_error(value, expected) < tolerance);
    CHECK(relative_error(gradient, slope) < tolerance);
    auto added = torch::ones_like(sky);
    chunks->value_and_gradient(sky, added, Accumulate::add);
    CHECK(relative_error(added, gradient + 1) < tolerance);
    // Differentiable once, and to the last bit the same in every place.
    Tensor own;
    CHECK(same(gradient_of([&](const Tensor& x) { return (own = chunks->chi_squared(x)).sum(); }, sky), gradient));
    CHECK(same(own, value.to(dtype)));
    if (chunk == 1) continue;
    for (const auto residency : all_residencies) {
      chunks->set_residency(residency);
      for (int i = 0; i < 2; ++i) {
        const auto [again, again_gradient] = evaluate_chunks(*chunks, sky);
        CHECK(same(again, value));
        CHECK(same(again_gradient, gradient));
      }
    }
    CHECK(chunks->normalizer() == whole->normalizer());
    CHECK(chunks->samples() == whole->samples());
  }
}

TEST_CASE("memory of chunks: the samples, what is kept of them, or nothing", "[losses][chunks][quick]") {
  auto chunks = in_chunks(ChunkedLikelihoodOptions().chunk(200));
  const auto sky = torch::ones({1, 16, 16}, torch::kFloat64);
  const auto data = chunk_data().memory_bytes();
  CHECK(chunks->memory_bytes() == data);
  evaluate_chunks(*chunks, sky);
  const auto kept = chunks->memory_bytes();
  CHECK(kept > 2 * data);
  chunks->set_residency(DataResidency::host);
  evaluate_chunks(*chunks, sky);
  CHECK(chunks->memory_bytes() == data);
  chunks->set_residency(DataResidency::disk);
  evaluate_chunks(*chunks, sky);
  CHECK(chunks->memory_bytes() == 0);
  chunks->set_residency(DataResidency::device);
  evaluate_chunks(*chunks, sky);
  CHECK(chunks->memory_bytes() == kept);
}

TEST_CASE("a chunk is as large as a budget, and the budget says so once", "[losses][chunks][quick]") {
  const auto sky = torch::ones({1, 16, 16}, torch::kFloat64);
  const Warnings warnings;
  auto large = in_chunks(ChunkedLikelihoodOptions().memory_budget(1e9));
  CHECK(large->chunk() == 0);
  evaluate_chunks(*large, sky);
  CHECK(large->chunk() == 800);
  CHECK(large->residency() == DataResidency::device);
  CHECK(warnings.said().empty());
  auto small = in_chunks(ChunkedLikelihoodOptions().memory_budget(1.5e5));
  for (int i = 0; i < 3; ++i) evaluate_chunks(*small, sky);
  CHECK(small->chunk() < 800);
  CHECK(small->chunk() >= 256);
  CHECK(small->residency() == DataResidency::host);
  REQUIRE(warnings.said().size() == 1);
  CHECK_THAT(warnings.said().front(), ContainsSubstring("steps see all of them"));
  CHECK_THROWS_AS(in_chunks(ChunkedLikelihoodOptions().chunk(-1)), ValueError);
  CHECK_THROWS_AS(in_chunks(ChunkedLikelihoodOptions().memory_budget(-1)), ValueError);
  CHECK_THROWS_AS(in_chunks(ChunkedLikelihoodOptions().residency(DataResidency::disk).folder("/no/such/folder")), FileError);
}

TEST_CASE("out of memory halves the chunk for good, and says so once", "[losses][chunks][quick]") {
  const GridCoords coords(0.05, 16);
  const std::int64_t nvis = 20000;
  const auto spread = [&](std::uint64_t seed) {
    return (2 * uniform({nvis}, torch::kFloat64, seed) - 1) * 0.9 * 7.5 * coords.du();
  };
  const Visibilities data(Baselines::in_lambda(spread(1), spread(2)), normal({nvis}, torch::kComplexDouble, 3),
                          uniform({nvis}, torch::kFloat64, 4) + 1);
  const auto sky = uniform({1, 16, 16}, torch::kFloat64, 5);
  auto whole = LooseLikelihood(coords, data, ChannelMap::cube(1), NufftOptions{1e-11});
  const auto [expected, slope] = evaluate_chunks(*whole, sky);
  const auto residency = GENERATE(DataResidency::device, DataResidency::host);
  auto chunks = ChunkedLikelihood(coords, data, ChannelMap::cube(1),
                                  ChunkedLikelihoodOptions().chunk(nvis).residency(residency).transform(NufftOptions{1e-11}));
  const Warnings warnings;
  {
    const TightAllocator allocator(16 * 6000);  // the data of 6000 samples
    for (int i = 0; i < 2; ++i) {
      const auto [value, gradient] = evaluate_chunks(*chunks, sky);
      CHECK(relative_error(value, expected) < 1e-10);
      CHECK(relative_error(gradient, slope) < 1e-10);
    }
  }
  CHECK(chunks->chunk() == 5000);
  CHECK(chunks->residency() == DataResidency::host);
  REQUIRE(warnings.said().size() == 1);
  CHECK_THAT(warnings.said().front(), ContainsSubstring("20000 visibilities at a time") && ContainsSubstring("10000"));
  // The chunk is what a checkpoint has to know.
  auto resumed = ChunkedLikelihood(coords, data, ChannelMap::cube(1), ChunkedLikelihoodOptions().transform(NufftOptions{1e-11}));
  resumed->load_working_state(chunks->working_state());
  CHECK(same(evaluate_chunks(*resumed, sky).second, evaluate_chunks(*chunks, sky).second));
  CHECK_THROWS_AS(resumed->load_working_state({{"chunk", torch::tensor(std::int64_t{0})}}), FileError);
  CHECK_THROWS_AS(resumed->load_working_state({{"chunks", torch::tensor(std::int64_t{5})}}), FileError);

  const TightAllocator nothing(3000);  // an image, but not 256 samples
  CHECK_THROWS_WITH(evaluate_chunks(*chunks, sky), ContainsSubstring("out of memory") && ContainsSubstring("smaller image"));
}

TEST_CASE("what is wrong with an image is said, and no second derivative is made up", "[losses][chunks][quick]") {
  auto chunks = in_chunks(ChunkedLikelihoodOptions().chunk(300));
  const auto sky = torch::ones({1, 16, 16}, torch::kFloat64).set_requires_grad(true);
  const auto value = chunks->chi_squared(sky);
  CHECK_THROWS_WITH(torch::autograd::grad({value}, {sky}, {}, true, /*create_graph=*/true),
                    ContainsSubstring("second derivative"));
  CHECK_THROWS_AS(chunks->chi_squared(torch::ones({2, 16, 16}, torch::kFloat64)), ShapeError);
  auto small = torch::ones({1, 8, 8}, torch::kFloat64);
  CHECK_THROWS_AS(chunks->value_and_gradient(sky.detach(), small, Accumulate::overwrite), ShapeError);
}

TEST_CASE("visibilities are offloaded and restored amid a fit, which goes where it would have gone", "[losses][chunks]") {
  const auto step = GENERATE(StepKind::fused, StepKind::eager);
  const TemporaryFolder folder;
  const SmallProblem problem{.coords = chunk_grid, .nchan = 1};
  const auto fit = [&](bool moves, std::int64_t epochs, bool resume = false) {
    auto model = problem.model();
    auto chunks = in_chunks(ChunkedLikelihoodOptions().chunk(300).noise(NoiseModel::student(4)));
    auto options = TrainOptions().learning_rate(0.1).step(step).epochs(epochs);
    if (resume) options.checkpoint(folder / "checkpoint.safetensors").resume(true);
    std::vector<DataResidency> seen;
    options.callbacks({[&, chunks](const Progress& progress) mutable {
      if (moves && progress.loss.epoch == 5) chunks->set_residency(DataResidency::host);
      if (moves && progress.loss.epoch == 10) chunks->set_residency(DataResidency::disk);
      if (moves && progress.loss.epoch == 15) chunks->set_residency(DataResidency::device);
      seen.push_back(chunks->residency());
      return CallbackAction::proceed;
    }});
    const auto result = Trainer(model, Objective(chunks), options).fit();
    CHECK(result.step == step);
    if (moves && epochs == 20) CHECK(std::count(seen.begin(), seen.end(), DataResidency::disk) == 5);
    return std::pair(result.loss.total(), model->base().detach().clone());
  };
  const auto [loss, base] = fit(false, 20);
  const auto [moved_loss, moved_base] = fit(true, 20);
  CHECK(moved_loss == loss);
  CHECK(same(moved_base, base));
  fit(true, 8, true);
  CHECK(same(fit(false, 20, true).second, base));
}

TEST_CASE("convex optimizers and L-BFGS take chunks of Gaussian noise", "[losses][chunks]") {
  const auto kind = GENERATE(OptimizerKind::pogm, OptimizerKind::lbfgs);
  const auto data = chunk_data();
  const auto fit = [&](const Objective& objective) {
    const auto start = GriddedNetOptions(chunk_grid).base_cube(uniform({1, 16, 16}, torch::kFloat64, 3)).dtype(torch::kFloat64);
    auto model = GriddedNet(kind == OptimizerKind::pogm ? GriddedNetOptions(start).pixel_mapping(nonnegative_mapping()) : start);
    return Trainer(model, objective, TrainOptions().optimizer(kind).epochs(60)).fit().loss.total();
  };
  const NufftOptions transform{1e-11};
  const double whole =
      fit(Objective(LooseLikelihood(chunk_grid, data, ChannelMap::continuum(2), transform), {terms::sparsity(1e-5)}));
  const double chunks =
      fit(Objective(in_chunks(ChunkedLikelihoodOptions().chunk(300).transform(transform)), {terms::sparsity(1e-5)}));
  CHECK(chunks == Approx(whole).epsilon(1e-5));
}
