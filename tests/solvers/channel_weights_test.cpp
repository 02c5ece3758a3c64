// Weights of channels: terms of a cube of which each channel counts otherwise.
#include "catch.h"

#include <string>
#include <vector>

#include <ATen/ops/full.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/wavelet/sara_bases.h>
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

const std::vector<double> factors = {1, 0.3};

std::vector<Term> weighing_channels() {
  std::vector<Term> all;
  for (const auto& term : every_convex_term()) all.push_back(term.with_channel_factors(factors));
  all.push_back(terms::tv_slope(0.004).with_channel_factors({0.5, 2}));
  all.push_back(terms::wavelets(0.003).with_channel_factors({2, 1}));
  return all;
}

/// Those that kernels know.
std::vector<Term> usual_terms() {
  return {terms::sparsity(2e-3).with_channel_factors(factors), terms::tv_image(1e-3).with_channel_factors({0.2, 1}),
          terms::tv_slope(4e-4).with_channel_factors({0.5, 2})};
}

struct End {
  TrainResult result;
  Tensor sky;
};

End end_of(const std::shared_ptr<Likelihood>& likelihood, std::vector<Term> terms, Tensor base, double normalizer) {
  auto model = positive_model(base.clone());
  const auto objective = Objective(likelihood, std::move(terms)).divided_by(normalizer);
  auto result = Trainer(model, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-7).epochs(20000)).fit();
  const torch::NoGradGuard no_grad;
  return {std::move(result), model->make_sky().detach().clone()};
}

}  // namespace

TEMPLATE_TEST_CASE("a term's value with weights of channels is the sum over channels by themselves", "[solvers][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  for (const auto& problems : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}}) {
    const auto sky = base_image(dtype, 4, problems);
    for (const auto& term : every_convex_term()) {
      const auto value = [&](const Tensor& cube) { return term.evaluate(ModelOutput(small_grid, {}, cube)); };
      const auto expected = value(sky.narrow(-3, 0, 1)) * factors[0] + value(sky.narrow(-3, 1, 1)) * factors[1];
      const auto own = term.with_channel_factors(factors).evaluate(ModelOutput(small_grid, {}, sky));
      INFO(term.name());
      CHECK(own.sizes() == expected.sizes());
      CHECK(relative_error(own, expected) < tolerance<TestType>(1e-12, 1e-5));
    }
  }
}

TEST_CASE("terms without a sum over channels by themselves have no weights of channels", "[solvers][quick]") {
  const Term own("own", 1, [](const ModelOutput& output) { return output.sky.sum({-3, -2, -1}); });
  CHECK_THROWS_AS(own.with_channel_factors({1, 2}), ValueError);
  CHECK_THROWS_AS(terms::tv_channel(1).with_channel_factors({1, 2}), ValueError);
  CHECK_THROWS_AS(terms::sparsity(1).with_channel_factors({}), ValueError);
  CHECK_THROWS_AS(terms::sparsity(1).with_channel_factors({1, -2}), ValueError);
  const auto three = terms::tv_image(1).with_channel_factors({1, 2, 3});
  const auto sky = base_image(torch::kFloat64, 4);
  CHECK_THROWS_AS(three.evaluate(ModelOutput(small_grid, {}, sky)), ShapeError);
  auto model = positive_model(sky);
  const auto refused = [&](std::vector<Term> terms) {
    return ConvexObjective::obstacle(*model, Objective(likelihood_of("exact", torch::kFloat64), std::move(terms)));
  };
  CHECK(!refused({three}).empty());
  CHECK(!refused({terms::sparsity(1).with_channel_factors({1, 2}), terms::tv_channel(1)}).empty());
  CHECK(refused({terms::sparsity(1).with_channel_factors({1, 2})}).empty());
}

TEMPLATE_TEST_CASE("with weights of channels a convex objective has the objective's losses and gradient", "[solvers][quick]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  for (const auto& problems : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}}) {
    auto model = positive_model(base_image(dtype, 4, problems));
    const Objective objective(likelihood_of("exact", dtype), weighing_channels());
    ConvexObjective function(model.ptr(), objective);
    auto gradient = at::full_like(function.images(), 7);
    const auto simple = function.evaluate(function.images(), gradient);
    const auto value = objective.evaluate(*model);
    const auto losses = at::tensor(function.losses(), torch::kFloat64);
    CHECK(relative_error(losses, value.table().to(torch::kFloat64).flatten()) < tolerance<TestType>(1e-12, 1e-5));
    auto smooth = value.nll.sum();
    for (const std::size_t term : {0, 2, 3, 4}) smooth = smooth + value.terms[term].sum();
    const double share = ops::SaraBases::share;  // of the wavelets' weight, in the basis of Dirac: linear
    const auto sky = model->make_sky();
    for (std::size_t c = 0; c < factors.size(); ++c)
      smooth = smooth + share * objective.terms()[6].weight(0, c) * sky.select(-3, static_cast<std::int64_t>(c)).sum();
    smooth.backward();
    CHECK(relative_error(gradient, model->base().grad().view_as(gradient)) < tolerance<TestType>(1e-11, 1e-4));
    const auto sum = [](const Tensor& values) { return values.detach().to(torch::kFloat64).sum().template item<double>(); };
    double of_simple = 0, linear = 0;
    for (const double each : simple) of_simple += each;
    for (std::size_t c = 0; c < factors.size(); ++c)
      linear += share * objective.terms()[6].weight(0, c) * sum(sky.select(-3, static_cast<std::int64_t>(c)));
    CHECK(of_simple == Approx(sum(value.terms[1]) + sum(value.terms[5]) + sum(value.terms[6]) - linear).epsilon(1e-4));
  }
}

TEST_CASE("the optimum with weights of channels is that of each channel by itself", "[solvers]") {
  const auto data = source_with_noise();
  const auto whole = likelihood_of("exact", torch::kFloat64);
  const auto base = base_image(torch::kFloat64, 5);
  const double normalizer = whole->normalizer();
  const auto together = end_of(whole, usual_terms(), base, normalizer);
  REQUIRE(together.result.stop_reason == StopReason::converged);
  REQUIRE(together.result.gap);
  double gaps = 0, total = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto own = ExactLikelihood(small_grid, data.select_channels({c}), ChannelMap::cube(1)).ptr();
    std::vector<Term> terms;
    for (const auto& term : usual_terms()) {
      const auto weight = term.weight(0, static_cast<std::size_t>(c));
      terms.push_back(Term::known(term.kind(), weight, term.settings()));
    }
    const auto alone = end_of(own, terms, base.narrow(0, c, 1), normalizer);
    gaps += alone.result.gap.value();
    total += alone.result.loss.total();
    CHECK(relative_error(together.sky.narrow(0, c, 1), alone.sky) < 1e-3);
  }
  CHECK(together.result.loss.total() == Approx(total).epsilon(1e-6));
  CHECK(*together.result.gap < 20 * gaps + 1e-6 * total);
  CHECK(*together.result.gap >= 0);
  auto uniform = end_of(whole, {terms::sparsity(2e-3), terms::tv_image(1e-3), terms::tv_slope(4e-4)}, base, normalizer);
  CHECK(relative_error(uniform.sky, together.sky) > 0.01);  // the weights are not without effect
}

TEMPLATE_TEST_CASE("weights of images in the proximal map: kernels, a GPU's and tensor operations agree", "[solvers][quick]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto hann = GENERATE(false, true), bent = GENERATE(false, true), either = GENERATE(false, true);
  CubeProximal::Weights weights{{0.3, 0.1, 0, 0.2, 0.4, 0.1}, {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}};
  if (bent) weights.curvature = {0.1, 0, 0.3, 0.2, 0.05, 0.2}, weights.variation[5] = weights.curvature[5] = 0;
  if (either) weights.magnitude = {0.1, 0.2, 0.3, 0, 0.1, 0.2};
  CAPTURE(hann, bent, either);
  const Tensor q = normal({2, 3, 20, 20}, dtype, 3) * 2;
  const Tensor mask = (uniform({2, 3, 20, 20}, torch::kFloat64, 2) < 0.8).to(dtype);
  const std::vector<double> steps = {0.7, 1, 0.5, 1, 1.5, 1};
  CubeProximal kernels(q, hann, mask, weights), tensors(q, hann, mask, weights, CubeProximal::By::tensors),
      emulated(q, hann, mask, weights, CubeProximal::By::gpu_kernels);
  for (const auto& passes : {std::vector<std::int64_t>{1, 4}, std::vector<std::int64_t>{7, 3}}) {
    auto x = at::full_like(q, 7), expected = x.clone(), on_gpu = x.clone();
    kernels.apply(q, steps, passes, x);
    tensors.apply(q, steps, passes, expected);
    emulated.apply(q, steps, passes, on_gpu);
    CHECK(relative_error(x, expected) < tolerance<TestType>(1e-12, 2e-5));
    CHECK(relative_error(on_gpu, expected) < tolerance<TestType>(1e-12, 2e-5));
    CHECK(kernels.dual().sizes() == tensors.dual().sizes());
    CHECK(kernels.dual().size(2) == 3);
    CHECK(relative_error(kernels.slope(), tensors.slope()) < tolerance<TestType>(1e-11, 1e-3));
  }
  CubeProximal resumed(q, hann, mask, weights);
  resumed.set_dual(kernels.dual());
  auto x = at::full_like(q, 7), again = x.clone();
  kernels.apply(q, steps, {2, 2}, x);
  resumed.apply(q, steps, {2, 2}, again);
  CHECK(torch::equal(x, again));
  CHECK_THROWS_AS(CubeProximal(q, hann, mask, {{1, 2, 3}, {0, 0, 0}, {0, 0, 0}}), ValueError);
  CHECK_THROWS_AS(CubeProximal(q, hann, mask, {{1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0}}), ValueError);
}

TEST_CASE("with weights of channels POGM on a device goes the host's way", "[solvers][device][quick]") {
  // Strong enough for no iteration to ask for more passes, which are in force after a look alone.
  const Objective objective(likelihood_of("exact", torch::kFloat64), {terms::sparsity(0.02).with_channel_factors(factors),
                                                                      terms::tv_image(0.01).with_channel_factors({0.2, 1}),
                                                                      terms::tv_slope(0.005).with_channel_factors({0.5, 2})});
  const auto base = base_image(torch::kFloat64, 5, {2});
  const auto host_model = positive_model(base), device_model = positive_model(base);
  ConvexObjective host(host_model.ptr(), objective, CubeProximal::By::tensors),
      device(device_model.ptr(), objective, CubeProximal::By::gpu_kernels);
  CHECK_FALSE(device.waits_for_device());
  Pogm pogm(host, host.images());
  DevicePogm on_device(device, Momentum::optimized);
  on_device.prepare();
  for (int k = 0; k < 8; ++k) {
    pogm.iterate();
    on_device.iterate(on_device.passes());
    on_device.keep_report();
    CHECK(relative_error(device_model->base().detach(), host_model->base().detach()) < 1e-10);
  }
  auto gradient = at::empty_like(device.images());
  const auto values = device.evaluate_on_device(device.images(), gradient);
  const auto simple = host.evaluate(host.images(), gradient);
  CHECK(relative_error(values.losses.flatten(), at::tensor(host.losses(), torch::kFloat64)) < 1e-9);
  CHECK(relative_error(values.simple, at::tensor(simple, torch::kFloat64)) < 1e-9);
}

TEST_CASE("a fit with weights of channels goes on bit for bit, and not with others", "[solvers]") {
  const TemporaryFolder folder;
  const auto likelihood = likelihood_of("exact", torch::kFloat64);
  const auto fit = [&](std::vector<Term> terms, std::int64_t epochs, bool resume) {
    auto model = positive_model(base_image(torch::kFloat64, 5));
    const auto options = TrainOptions().optimizer(OptimizerKind::pogm).epochs(epochs).checkpoint(folder.path() / "state");
    Trainer(model, Objective(likelihood, std::move(terms)), resume ? TrainOptions(options).resume(true) : options).fit();
    return model->base().detach().clone();
  };
  const auto whole = fit(usual_terms(), 12, false);
  fit(usual_terms(), 5, false);
  auto others = usual_terms();
  others[0] = others[0].with_channel_factors({1, 0.4});
  CHECK_THROWS_AS(fit(others, 12, true), Error);
  CHECK(torch::equal(fit(usual_terms(), 12, true), whole));
}
