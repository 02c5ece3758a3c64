#include "catch.h"

#include <cmath>
#include <functional>

#include <malloc.h>

#include <ATen/Parallel.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/steps/eager_step.h>
#include <mpol_cpp/train/steps/fused_step.h>

#include "compare.h"
#include "problems.h"
#include "random.h"
#include "temporary_folder.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

std::vector<Term> every_term() {
  return {terms::edge_clamp(1e-2), terms::sparsity(1e-3),       terms::tv_image(2e-3),
          terms::tsv(3e-3),        terms::entropy(1e-3),        terms::tv_channel(1e-3),
          terms::psd(1e-16, 0.05), terms::group_sparsity(2e-3), terms::spectral_smoothness(1e-3),
          terms::tv_slope(2e-3)};
}

/// A model with random base pixels and the objective it is fitted to.
struct Fitted {
  GriddedNet model;
  Objective objective;

  Fitted(std::int64_t npix, std::int64_t nchan, torch::Dtype dtype, std::vector<Term> terms, const std::string& likelihood,
         std::vector<std::int64_t> problems = {})
      : model(make_model(npix, nchan, dtype, std::move(problems))),
        objective(make_objective(npix, nchan, dtype, std::move(terms), likelihood)) {}

  static GriddedNet make_model(std::int64_t npix, std::int64_t nchan, torch::Dtype dtype, std::vector<std::int64_t> shape) {
    shape.insert(shape.end(), {nchan, npix, npix});
    return GriddedNet(GriddedNetOptions(GridCoords(0.05, npix)).base_cube(normal(shape, torch::kFloat64, 3) - 2).dtype(dtype));
  }
  static Objective make_objective(std::int64_t npix, std::int64_t nchan, torch::Dtype dtype, std::vector<Term> terms,
                                  const std::string& likelihood = "gridded") {
    return Objective(random_likelihood(likelihood, GridCoords(0.05, npix), nchan, dtype), std::move(terms));
  }

  std::unique_ptr<Step> step(StepKind kind, const TrainOptions& options) {
    if (kind == StepKind::fused) return std::make_unique<FusedStep>(model.ptr(), objective, options, "tested");
    return std::make_unique<EagerStep>(model.ptr(), objective, options, "tested");
  }
  Tensor base() { return model->base().detach().clone(); }
  Tensor image() {
    const torch::NoGradGuard no_grad;
    return model->make_sky().clone();
  }
};

struct Trajectory {
  Tensor losses;  // (steps, columns, problems)
  Tensor parameter_sums, base, image;
};

Trajectory follow(Fitted& fitted, StepKind kind, const TrainOptions& options, int steps) {
  const auto step = fitted.step(kind, options);
  std::vector<Tensor> losses, sums;
  for (int i = 0; i < steps; ++i) {
    const auto report = step->take(options.learning_rate() * (i < steps / 2 ? 1 : 0.5));
    losses.push_back(report.losses);
    sums.push_back(report.parameters_sum);
  }
  return {at::stack(losses), at::stack(sums), fitted.base(), fitted.image()};
}

TrainOptions optimizer_options(OptimizerKind kind, double momentum = 0) {
  return TrainOptions().optimizer(kind).learning_rate(kind == OptimizerKind::adam ? 0.1 : 2.0).momentum(momentum);
}

void check_that_fused_follows_eager(Fitted& fused, Fitted& eager, const TrainOptions& options, int steps) {
  const auto own = follow(fused, StepKind::fused, options, steps), expected = follow(eager, StepKind::eager, options, steps);
  CHECK(((own.losses - expected.losses).abs() <= 1e-10 * expected.losses.abs()).all().item<bool>());
  CHECK(relative_error(own.image, expected.image) < 1e-9);
  CHECK(relative_error(own.base, expected.base) < 1e-7);
  CHECK(relative_error(own.parameter_sums, expected.parameter_sums) < 1e-9);
}

}  // namespace

TEST_CASE("fused steps follow eager ones in float64", "[train][fused]") {
  const std::int64_t npix = GENERATE(2, 6, 30, 64, 106), nchan = GENERATE(1, 3);
  const auto options = GENERATE(optimizer_options(OptimizerKind::adam), optimizer_options(OptimizerKind::sgd),
                                optimizer_options(OptimizerKind::sgd, 0.8));
  CAPTURE(npix, nchan, to_string(options.optimizer()), options.momentum());
  Fitted fused(npix, nchan, torch::kFloat64, every_term(), "gridded"),
      eager(npix, nchan, torch::kFloat64, every_term(), "gridded");
  check_that_fused_follows_eager(fused, eager, options, 100);
}

TEST_CASE("fused steps follow eager ones in float64 with likelihoods of images", "[train][fused]") {
  const std::string likelihood = GENERATE("exact", "loose");
  const std::int64_t npix = GENERATE(2, 30, 64), nchan = GENERATE(1, 2);
  const auto options = GENERATE(optimizer_options(OptimizerKind::adam), optimizer_options(OptimizerKind::sgd, 0.8));
  CAPTURE(likelihood, npix, nchan, to_string(options.optimizer()));
  Fitted fused(npix, nchan, torch::kFloat64, every_term(), likelihood),
      eager(npix, nchan, torch::kFloat64, every_term(), likelihood);
  check_that_fused_follows_eager(fused, eager, options, 50);
}

TEST_CASE("fused L-BFGS follows eager L-BFGS, to the same objective", "[train][fused]") {
  const std::int64_t nchan = GENERATE(1, 2);
  const std::string likelihood = GENERATE("gridded", "exact");
  const auto options = TrainOptions().optimizer(OptimizerKind::lbfgs).learning_rate(1);
  Fitted fused(30, nchan, torch::kFloat64, every_term(), likelihood), eager(30, nchan, torch::kFloat64, every_term(), likelihood);
  const auto own = fused.step(StepKind::fused, options), other = eager.step(StepKind::eager, options);
  for (int i = 0; i < 40; ++i) {
    const auto report = own->take(1), expected = other->take(1);
    const double bound = i < 10 ? 1e-8 : 1e-4;
    CAPTURE(i);
    CHECK(relative_error(report.losses, expected.losses) < bound);
    CHECK(relative_error(report.parameters_sum, fused.base().sum()) < 1e-12);
  }
  const auto total = own->take(1).losses[0][0].item<double>(), expected = other->take(1).losses[0][0].item<double>();
  CHECK(total == Approx(expected).epsilon(1e-6));
}

TEST_CASE("fused steps follow eager ones in float32", "[train][fused][quick]") {
  const auto options = GENERATE(optimizer_options(OptimizerKind::adam), optimizer_options(OptimizerKind::sgd, 0.8));
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  CAPTURE(to_string(options.optimizer()), likelihood);
  Fitted fused(30, 2, torch::kFloat32, every_term(), likelihood), eager(30, 2, torch::kFloat32, every_term(), likelihood),
      exact(30, 2, torch::kFloat64, every_term(), likelihood);
  const auto own = follow(fused, StepKind::fused, options, 100), other = follow(eager, StepKind::eager, options, 100);
  const auto expected = follow(exact, StepKind::eager, options, 100);
  CHECK(relative_error(own.losses.select(1, 0), expected.losses.select(1, 0)) < 1e-5);
  const double own_error = relative_error(own.image, expected.image), other_error = relative_error(other.image, expected.image);
  CAPTURE(own_error, other_error);
  CHECK(own_error < std::max(1e-4, 2 * other_error));
}

TEMPLATE_TEST_CASE("a batch of fused problems is bitwise each of them alone", "[train][fused][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto options = optimizer_options(OptimizerKind::adam);
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  Fitted together(22, 2, dtype, every_term(), likelihood, {2, 3});
  const auto start = together.base();
  const auto all = follow(together, StepKind::fused, options, 10);
  CHECK(all.losses.size(2) == 6);
  for (std::int64_t problem = 0; problem < 6; ++problem) {
    Fitted alone(22, 2, dtype, every_term(), likelihood);
    {
      const torch::NoGradGuard no_grad;
      alone.model->base().copy_(start.flatten(0, 1)[problem]);
    }
    const auto one = follow(alone, StepKind::fused, options, 10);
    CHECK(torch::equal(all.base.flatten(0, 1)[problem], one.base));
    CHECK(torch::equal(all.losses.select(2, problem), one.losses.select(2, 0)));
  }
}

TEST_CASE("a power spectrum of eight cells fits in float64 by either step, and is refused in float32", "[train][fused][quick]") {
  const auto coords = Fitted(22, 1, torch::kFloat64, {}, "gridded").model->coords();
  const std::vector<Term> terms = {terms::psd(1e-280, 8 * coords.cell_size())};
  const auto options = optimizer_options(OptimizerKind::adam);
  Fitted fused(22, 1, torch::kFloat64, terms, "gridded"), eager(22, 1, torch::kFloat64, terms, "gridded");
  const auto ours = follow(fused, StepKind::fused, options, 5), by_autograd = follow(eager, StepKind::eager, options, 5);
  CHECK(ours.losses.isfinite().all().item<bool>());
  CHECK(relative_error(ours.losses, by_autograd.losses) < 1e-10);
  for (const auto step : {StepKind::fused, StepKind::eager}) {
    Fitted single(22, 1, torch::kFloat32, terms, "gridded");
    CHECK_THROWS_AS(follow(single, step, options, 1), ValueError);
  }
}

TEMPLATE_TEST_CASE("problems with weights of their own are bitwise each of them alone", "[train][fused][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto options = optimizer_options(OptimizerKind::adam);
  const std::vector<double> sparsity{0, 1e-3, 1e-2}, psd{1e-16, 0, 3e-16};
  const auto terms_of = [&](std::vector<double> own_sparsity, std::vector<double> own_psd) {
    return std::vector<Term>{terms::tv_image(2e-3), terms::sparsity(1).with_weights(std::move(own_sparsity)),
                             terms::psd(1, 0.05).with_weights(std::move(own_psd))};
  };
  Fitted together(22, 2, dtype, terms_of(sparsity, psd), "gridded", {3});
  const auto start = together.base();
  Fitted eager(22, 2, dtype, terms_of(sparsity, psd), "gridded", {3});
  const auto all = follow(together, StepKind::fused, options, 10), by_autograd = follow(eager, StepKind::eager, options, 10);
  CHECK(relative_error(all.losses, by_autograd.losses) < tolerance<TestType>(1e-10, 1e-5));
  for (std::size_t problem = 0; problem < 3; ++problem) {
    Fitted alone(22, 2, dtype, terms_of({sparsity[problem]}, {psd[problem]}), "gridded");
    {
      const torch::NoGradGuard no_grad;
      alone.model->base().copy_(start[static_cast<std::int64_t>(problem)]);
    }
    const auto one = follow(alone, StepKind::fused, options, 10);
    CHECK(torch::equal(all.base[static_cast<std::int64_t>(problem)], one.base));
    CHECK(torch::equal(all.losses.select(2, static_cast<std::int64_t>(problem)), one.losses.select(2, 0)));
  }
  CHECK_THROWS_AS(terms::sparsity(1).with_weights({}), ValueError);
  CHECK_THROWS_AS(terms::sparsity(1).with_weights({1, -1}), ValueError);
  Fitted two(22, 2, dtype, terms_of({1, 2}, {0}), "gridded", {3});
  CHECK_THAT(FusedStep::obstacle(*two.model, two.objective, options), ContainsSubstring("weights for 2 problems, the model 3"));
  CHECK_THROWS_AS(two.objective.evaluate(*two.model), ShapeError);
}

TEST_CASE("fused and eager steps take up each other's state", "[train][fused][quick]") {
  const auto options = GENERATE(optimizer_options(OptimizerKind::adam), optimizer_options(OptimizerKind::sgd),
                                optimizer_options(OptimizerKind::sgd, 0.8));
  const auto [first_kind, second_kind] =
      GENERATE(std::pair(StepKind::fused, StepKind::eager), std::pair(StepKind::eager, StepKind::fused),
               std::pair(StepKind::fused, StepKind::fused));
  const std::string likelihood = GENERATE("gridded", "exact");
  Fitted interrupted(14, 2, torch::kFloat64, every_term(), likelihood), whole(14, 2, torch::kFloat64, every_term(), likelihood);
  const auto first = interrupted.step(first_kind, options), second = interrupted.step(second_kind, options);
  CHECK(first->state().empty());
  for (int i = 0; i < 5; ++i) first->take(0.1);
  second->load_state(first->state());
  const auto state = second->state();
  for (int i = 0; i < 5; ++i) second->take(0.1);
  const auto reference = whole.step(StepKind::fused, options);
  for (int i = 0; i < 10; ++i) reference->take(0.1);
  CHECK(relative_error(interrupted.base(), whole.base()) < (first_kind == second_kind ? 1e-300 : 1e-9));
  const auto later = second->state();
  CHECK(later.size() == state.size());
  for (const auto& [name, tensor] : state) CHECK_FALSE(torch::equal(tensor, later.at(name)));
}

TEMPLATE_TEST_CASE("fused steps are bitwise the same for any number of threads", "[train][fused][quick]", float, double) {
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  const auto run = [&](int threads) {
    const Threads used(threads);
    Fitted fitted(70, 2, dtype_of<TestType>(), every_term(), likelihood);
    return follow(fitted, StepKind::fused, optimizer_options(OptimizerKind::adam), 6);
  };
  const auto expected = run(1);
  for (const int threads : {2, 3}) {
    const auto own = run(threads);
    CHECK(torch::equal(own.base, expected.base));
    CHECK(torch::equal(own.losses, expected.losses));
  }
}

TEST_CASE("memory does not grow over 10,000 fused steps", "[train][fused]") {
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  const auto kind = GENERATE(OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lbfgs);
  CAPTURE(likelihood, static_cast<int>(kind));
  Fitted fitted(12, 2, torch::kFloat32, every_term(), likelihood);
  const auto step = fitted.step(StepKind::fused, optimizer_options(kind));
  const auto held = [] {
    const auto heap = mallinfo2();
    return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
  };
  const auto take = [&](int count) {
    for (int i = 0; i < count; ++i) step->take(1e-4);
  };
  take(120);  // L-BFGS fills its history of 100
  const auto before = held();
  if (kind == OptimizerKind::lbfgs) take(100);  // some 20 evaluations each
  else take(likelihood == "loose" ? 1000 : 10'000);
  CHECK(held() < before + 4096);
}

TEST_CASE("a gradient whose square overflows breaks a step of Adam", "[train][fused][quick]") {
  const auto kind = GENERATE(StepKind::fused, StepKind::eager);
  const auto is_finite_after_step_with = [&](double weight) {
    Fitted fitted(12, 1, torch::kFloat32, {terms::sparsity(weight)}, "gridded");
    return std::isfinite(fitted.step(kind, optimizer_options(OptimizerKind::adam))->take(0.1).parameters_sum.item<double>());
  };
  CHECK(is_finite_after_step_with(1e15));
  CHECK_FALSE(is_finite_after_step_with(1e25));
}

TEST_CASE("an epsilon that float32 does not hold is refused", "[train][fused][quick]") {
  const auto term = GENERATE(terms::tv_image(1, 1e-40), terms::tv_channel(1, 1e-46));
  const auto adam = optimizer_options(OptimizerKind::adam);
  Fitted single(12, 2, torch::kFloat32, {term}, "gridded"), precise(12, 2, torch::kFloat64, {term}, "gridded");
  CHECK_THAT(FusedStep::obstacle(*single.model, single.objective, adam), ContainsSubstring("epsilon"));
  CHECK_THROWS_AS(single.step(StepKind::eager, adam)->take(0.1), ValueError);
  CHECK(FusedStep::obstacle(*precise.model, precise.objective, adam).empty());
  CHECK_NOTHROW(precise.step(StepKind::eager, adam)->take(0.1));
}

TEST_CASE("a state that does not fit is refused by a fused step", "[train][fused][quick]") {
  Fitted fitted(14, 2, torch::kFloat64, every_term(), "gridded"), other(16, 2, torch::kFloat64, every_term(), "gridded");
  const auto step = fitted.step(StepKind::fused, optimizer_options(OptimizerKind::adam));
  const auto larger = other.step(StepKind::fused, optimizer_options(OptimizerKind::adam));
  const auto descent = fitted.step(StepKind::fused, optimizer_options(OptimizerKind::sgd, 0.5));
  larger->take(0.1);
  descent->take(0.1);
  CHECK_THROWS_AS(step->load_state(larger->state()), FileError);
  CHECK_THROWS_AS(step->load_state(descent->state()), FileError);
  CHECK_THROWS_AS(descent->load_state({{"model.bcube.base_cube.exp_avg", torch::zeros({1})}}), FileError);
}

TEST_CASE("what a fused step cannot do it says", "[train][fused][quick]") {
  Fitted fitted(12, 2, torch::kFloat64, {}, "gridded");
  const auto adam = optimizer_options(OptimizerKind::adam);
  const auto obstacle = [&](const Objective& objective, const TrainOptions& options) {
    return FusedStep::obstacle(*fitted.model, objective, options);
  };
  const auto with = [&](std::vector<Term> terms) { return Fitted::make_objective(12, 2, torch::kFloat64, std::move(terms)); };
  CHECK(obstacle(with(every_term()), adam).empty());
  CHECK(obstacle(with(every_term()), optimizer_options(OptimizerKind::lbfgs)).empty());
  CHECK(obstacle(Fitted::make_objective(12, 2, torch::kFloat64, every_term(), "exact"), adam).empty());
  auto shifted = LooseLikelihood(GridCoords(0.05, 12), random_visibilities(GridCoords(0.05, 12), 2, 7), ChannelMap::cube(2));
  shifted->register_parameter("shift", torch::zeros({2}));
  CHECK_THAT(obstacle(Objective(shifted), adam), ContainsSubstring("shift"));
  CHECK_THAT(obstacle(with({terms::uv_sparsity(1.0, 1e5)}), adam), ContainsSubstring("uv_sparsity"));
  CHECK_THAT(obstacle(with({Term("mine", 1.0,
                                 [](const ModelOutput& out) {
                                   return out.sky.sum({-3, -2, -1});
                                 })}),
                      adam),
             ContainsSubstring("mine"));
  CHECK(obstacle(Fitted::make_objective(12, 2, torch::kFloat32, {}), adam).empty());  // the model decides the dtype
  CHECK_THAT(obstacle(Fitted::make_objective(14, 2, torch::kFloat64, {}), adam), ContainsSubstring("grid"));
  CHECK_THAT(obstacle(Fitted::make_objective(12, 3, torch::kFloat64, {}), adam), ContainsSubstring("channels"));

  auto options = GriddedNetOptions(GridCoords(0.05, 12)).nchan(2).dtype(torch::kFloat64);
  auto exponential = softplus_mapping();
  exponential.name = "exponential";
  GriddedNet mapped(options.pixel_mapping(exponential));
  CHECK_THAT(FusedStep::obstacle(*mapped, with({}), adam), ContainsSubstring("exponential"));
  auto impostor = softplus_mapping();
  impostor.forward = [](const Tensor& base) { return base.exp(); };
  GriddedNet misnamed(GriddedNetOptions(options).pixel_mapping(impostor));
  CHECK_THAT(FusedStep::obstacle(*misnamed, with({}), adam), ContainsSubstring("another function"));
  fitted.model->base().set_requires_grad(false);
  CHECK_THAT(obstacle(with({}), adam), ContainsSubstring("trained"));
  CHECK_THROWS_AS(FusedStep(fitted.model.ptr(), with({}), adam, "tested"), ValueError);
}
