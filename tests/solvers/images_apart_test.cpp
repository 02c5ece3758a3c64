// Cubes whose channels nothing joins: each image is a problem of its own to POGM.
#include "catch.h"

#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/batched_likelihood.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/device/device_pogm.h>
#include <mpol_cpp/solvers/pogm.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "random.h"
#include "solvers/convex_problems.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Every kind of term that joins no channels, with weights of channels where they are asked for.
std::vector<Term> terms_of(bool weighs_channels) {
  auto all = every_convex_term();
  all.push_back(terms::tv_slope(0.004));
  all.push_back(terms::wavelets(0.003));
  if (!weighs_channels) return all;
  for (auto& term : all) term = term.with_channel_factors({1, 0.3});
  return all;
}

/// Those that kernels know. The second channel, of small weights, takes longer.
std::vector<Term> terms_of_line() {
  return {terms::sparsity(2e-3).with_channel_factors({1, 0.02}), terms::tv_image(1e-3).with_channel_factors({2, 0.05}),
          terms::tv_slope(4e-4).with_channel_factors({1, 0.05})};
}

ConvexObjective apart(const GriddedNet& model, const Objective& objective, CubeProximal::By by = CubeProximal::By::kernels) {
  return {model.ptr(), objective, by, Parts::images};
}

std::shared_ptr<Likelihood> exact_of_channel(std::int64_t channel) {
  return ExactLikelihood(small_grid, source_with_noise().select_channels({channel}), ChannelMap::cube(1)).ptr();
}

/// The objective of one channel of another one.
Objective objective_of_channel(const Objective& whole, std::int64_t channel) {
  std::vector<Term> own;
  for (const auto& term : whole.terms())
    own.push_back(Term::known(term.kind(), term.weight(0, static_cast<std::size_t>(channel)), term.settings()));
  return Objective(exact_of_channel(channel), own).divided_by(whole.normalizer());
}

}  // namespace

TEMPLATE_TEST_CASE("images apart add up to the problems, value by value, and have their gradient", "[solvers][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  const std::string name = GENERATE("exact", "gridded", "loose");
  const bool weighs_channels = GENERATE(false, true);
  CAPTURE(name, weighs_channels);
  const auto bound = tolerance<TestType>(1e-12, 1e-5);
  for (const auto& problems : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}}) {
    auto terms = terms_of(weighs_channels);
    if (!problems.empty()) terms[1] = terms[1].with_weights({0.01, 0.02, 0.005});
    auto model = positive_model(base_image(dtype, 4, problems));
    const Objective objective(likelihood_of(name, dtype), terms), again(likelihood_of(name, dtype), terms);
    ConvexObjective together(model.ptr(), objective);
    auto function = apart(model, again);
    CHECK(together.parts() == Parts::problems);
    REQUIRE(function.parts() == Parts::images);
    REQUIRE(function.images().sizes() == at::IntArrayRef{together.images().size(0) * channels, 1, 24, 24});
    auto expected = at::full_like(together.images(), 7), gradient = at::full_like(function.images(), 7);
    const auto simple_of_problems = at::tensor(together.evaluate(together.images(), expected), torch::kFloat64);
    const auto simple = at::tensor(function.evaluate(function.images(), gradient), torch::kFloat64);
    CHECK(relative_error(gradient.view_as(expected), expected) < bound);
    CHECK(relative_error(function.of_problems(simple), simple_of_problems) < bound);
    const auto losses = at::tensor(function.losses(), torch::kFloat64).view({-1, function.images().size(0)});
    const auto of_problems = at::tensor(together.losses(), torch::kFloat64).view({-1, together.images().size(0)});
    CHECK(relative_error(function.of_problems(losses), of_problems) < bound);
    CHECK(relative_error(at::tensor(function.curvatures(), torch::kFloat64), at::tensor(together.curvatures(), torch::kFloat64)) <
          1e-4);
    auto on_device = apart(model, Objective(likelihood_of(name, dtype), terms), CubeProximal::By::gpu_kernels);
    const auto values = on_device.evaluate_on_device(on_device.images(), gradient);
    CHECK(relative_error(values.losses, losses) < bound);
    CHECK(relative_error(values.simple, simple) < bound);
    CHECK(relative_error(on_device.device_scales(values.losses), at::tensor(function.scales(), torch::kFloat64)) < bound);
  }
}

TEST_CASE("images are apart where nothing joins them and the likelihood tells their values", "[solvers][quick]") {
  const auto model = positive_model(base_image(torch::kFloat64, 4));
  const auto exact = likelihood_of("exact", torch::kFloat64);
  const auto parts = [&](std::vector<Term> terms) { return apart(model, Objective(exact, std::move(terms))).parts(); };
  CHECK(parts({terms::sparsity(1)}) == Parts::images);
  CHECK(parts({terms::sparsity(1), terms::tv_channel(0)}) == Parts::images);
  CHECK(parts({terms::sparsity(1), terms::tv_channel(1e-3)}) == Parts::problems);
  CHECK(parts({terms::spectral_smoothness(1e-3)}) == Parts::problems);
  struct Other : ExactLikelihoodImpl {
    using ExactLikelihoodImpl::ExactLikelihoodImpl;
  };
  const auto other = std::make_shared<Other>(small_grid, source_with_noise(), ChannelMap::cube(channels));
  CHECK(apart(model, Objective(std::static_pointer_cast<Likelihood>(other), {terms::sparsity(1)})).parts() == Parts::problems);
}

TEMPLATE_TEST_CASE("POGM takes each channel of a cube where it would go alone", "[solvers]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const bool either_sign = GENERATE(false, true);
  CAPTURE(either_sign);
  const Objective objective(likelihood_of("exact", torch::kFloat64), terms_of_line());
  const auto base = base_image(dtype, 5);
  const auto model_of = [&](const Tensor& own) {
    auto options = GriddedNetOptions(small_grid).base_cube(own.clone()).dtype(dtype);
    return GriddedNet(options.pixel_mapping(either_sign ? either_sign_mapping() : nonnegative_mapping()), Smoothing::hann);
  };
  const auto settled = [](ConvexObjective& function) {
    Pogm pogm(function, function.images());
    std::vector<std::int64_t> held(static_cast<std::size_t>(function.images().size(0)), 0);
    const std::vector<bool> all(held.size(), true);
    auto losses = std::vector<double>();
    for (int k = 0; k < 800; ++k) {
      const auto moved = pogm.iterate();
      if (losses.empty()) losses = function.losses();
      for (std::size_t i = 0; i < losses.size(); ++i) {
        if (moved[i % moved.size()]) losses[i] = function.losses()[i];
      }
      if (k % 8 == 7) pogm.hold_settled(1e-6, function.scales(losses), all);
      for (std::size_t i = 0; i < held.size(); ++i) {
        if (held[i] == 0 && pogm.is_held(i)) held[i] = pogm.iterations();
      }
    }
    return held;
  };
  auto whole = model_of(base);
  auto function = apart(whole, objective);
  const auto held = settled(function);
  for (std::int64_t c = 0; c < channels; ++c) {
    auto own = model_of(base.narrow(0, c, 1));
    auto alone = apart(own, objective_of_channel(objective, c));
    const auto held_alone = settled(alone);
    CHECK(held_alone.front() == held[static_cast<std::size_t>(c)]);
    // LibTorch sums magnitudes in an order that depends on how many images there are.
    const auto image = own->base().detach()[0], of_cube = whole->base().detach()[c];
    if (either_sign) CHECK(relative_error(image, of_cube) < tolerance<TestType>(1e-8, 1e-3));
    else CHECK(torch::equal(image, of_cube));
  }
  CHECK(held[0] > 0);
  CHECK(held[1] > 0);
  CHECK(held[0] != held[1]);
}

TEST_CASE("problems with data of their own have images apart, too", "[solvers][quick]") {
  const auto data = source_with_noise();
  const Visibilities brighter(data.baselines(), data.data() * 2, data.weights() * 0.5);
  const auto likelihood = [&](const Visibilities& own) {
    return std::shared_ptr<Likelihood>(ExactLikelihood(small_grid, own, ChannelMap::cube(channels)).ptr());
  };
  const std::vector<Term> all = {terms::sparsity(2e-3), terms::tv_image(1e-3)};
  auto model = positive_model(base_image(torch::kFloat64, 5, {2}));
  const std::vector<std::shared_ptr<Likelihood>> both = {likelihood(data), likelihood(brighter)};
  const Objective batch(BatchedLikelihood(both), all);
  auto function = apart(model, batch);
  REQUIRE(function.parts() == Parts::images);
  auto gradient = at::full_like(function.images(), 7);
  function.evaluate(function.images(), gradient);
  const auto losses = at::tensor(function.losses(), torch::kFloat64).view({-1, 2 * channels});
  const auto table = batch.evaluate(*model).table().to(torch::kFloat64);
  CHECK(relative_error(function.of_problems(losses), table) < 1e-12);
}

TEST_CASE("images apart on a device are held where the host holds them", "[solvers][device]") {
  // Strong enough for no iteration to ask for more passes, which are in force after a look alone.
  const std::vector<Term> strong = {terms::sparsity(0.02).with_channel_factors({1, 0.3}), terms::tv_image(0.01),
                                    terms::tv_slope(0.005).with_channel_factors({0.5, 2})};
  const auto base = base_image(torch::kFloat64, 5, {2});
  const auto host_model = positive_model(base), device_model = positive_model(base);
  auto host = apart(host_model, Objective(likelihood_of("exact", torch::kFloat64), strong), CubeProximal::By::tensors);
  auto there = apart(device_model, Objective(likelihood_of("exact", torch::kFloat64), strong), CubeProximal::By::gpu_kernels);
  REQUIRE(there.parts() == Parts::images);
  Pogm pogm(host, host.images());
  DevicePogm device(there, Momentum::optimized);
  device.prepare();
  const double tolerance = 1e-2;
  std::vector<double> losses;
  std::size_t held = 0;
  std::vector<bool> may_be(2 * channels, true);
  may_be[1] = false;
  for (int k = 0; k < 120; ++k) {
    const auto moved = pogm.iterate();
    if (losses.empty()) losses = host.losses();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (moved[i % moved.size()]) losses[i] = host.losses()[i];
    }
    device.iterate(device.passes());
    device.keep_report();
    if (k % 8 == 7) {
      pogm.hold_settled(tolerance, host.scales(losses), may_be);
      device.hold_settled(tolerance, may_be);
    }
    CHECK(relative_error(device_model->base().detach(), host_model->base().detach()) < 1e-8);
  }
  for (std::size_t i = 0; i < 2 * channels; ++i) held += pogm.is_held(i) ? 1 : 0;
  CHECK(held > 0);
  CHECK_FALSE(pogm.is_held(1));
  const auto ends = device.state().at("problems").select(1, 3);
  for (std::size_t i = 0; i < 2 * channels; ++i)
    CHECK((ends[static_cast<std::int64_t>(i)].item<double>() == 3) == pogm.is_held(i));
  CHECK(device.has_converged(tolerance) == pogm.has_converged(tolerance, host.scales(losses)));
}

TEST_CASE("a fit with images held goes on bit for bit", "[solvers]") {
  const TemporaryFolder folder;
  const auto likelihood = likelihood_of("exact", torch::kFloat64);
  const auto fit = [&](std::int64_t epochs, bool resume) {
    auto model = positive_model(base_image(torch::kFloat64, 5));
    const auto options = TrainOptions().optimizer(OptimizerKind::pogm).epochs(epochs).tolerance(1e-4);
    auto own = TrainOptions(options).checkpoint(folder.path() / "state.safetensors");
    auto result = Trainer(model, Objective(likelihood, terms_of_line()), resume ? own.resume(true) : own).fit();
    return std::pair{std::move(result), model->base().detach().clone()};
  };
  const auto [whole, image] = fit(20000, false);
  REQUIRE(whole.stop_reason == StopReason::converged);
  const std::int64_t half = 86;
  REQUIRE(whole.epochs > half);
  fit(half, false);
  const auto state = read_safetensors(folder.path() / "state.safetensors").tensors;
  CHECK((state.at("state.optimizer.problems_of_channels")[3] == 3).sum().item<std::int64_t>() == 1);  // one of the two is held
  CHECK(state.at("state.optimizer.w").sizes() == at::IntArrayRef{1, channels, 24, 24});
  const auto [resumed, same_image] = fit(20000, true);
  CHECK(resumed.resumed_from == half);
  CHECK(resumed.epochs == whole.epochs);
  CHECK(torch::equal(same_image, image));
}
