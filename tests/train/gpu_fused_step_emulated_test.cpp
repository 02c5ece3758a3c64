// The fused step of a GPU with its kernels emulated on the CPU.
#include "catch.h"

#include <functional>
#include <iterator>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/steps/fused_step.h>
#include <mpol_cpp/train/steps/eager_step.h>

#include "compare.h"
#include "failing_allocator.h"
#include "problems.h"
#include "random.h"
#include "rehearsed_recordings.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Model and objective with every term, made anew alike.
struct Emulated {
  GriddedNet model;
  Objective objective;

  explicit Emulated(torch::Dtype dtype, const std::vector<std::int64_t>& problems = {}, const std::string& likelihood = "gridded")
      : model(model_of(dtype, problems)),
        objective(random_likelihood(likelihood, GridCoords(0.05, npix), nchan, dtype),
                  {terms::edge_clamp(1e-2), terms::sparsity(1e-3), terms::tv_image(2e-3), terms::tsv(3e-3), terms::entropy(1e-3),
                   terms::tv_channel(1e-3), terms::psd(1e-16, 0.05), terms::group_sparsity(2e-3),
                   terms::spectral_smoothness(1e-3), terms::tv_slope(2e-3)}) {}

  static GriddedNet model_of(torch::Dtype dtype, std::vector<std::int64_t> shape) {
    shape.insert(shape.end(), {nchan, npix, npix});
    return GriddedNet(GriddedNetOptions(GridCoords(0.05, npix)).base_cube(normal(shape, torch::kFloat64, 3) - 2).dtype(dtype));
  }
  FusedStep step(const TrainOptions& options) {
    return {model.ptr(), objective, options, "tested", &mpol::detail::make_gpu_engine};
  }
  EagerStep eager(const TrainOptions& options) { return {model.ptr(), objective, options, "tested"}; }
  Tensor base() { return model->base().detach().clone(); }

  /// Leaves spectra and slopes out, with which a start that differs by 1e-14 ends 2e-4 away after two epochs of L-BFGS.
  void leave_spectra_out() {
    std::vector<Term> others;
    for (const auto& term : objective.terms()) {
      const auto kind = term.kind();
      if (kind != TermKind::group_sparsity && kind != TermKind::spectral_smoothness && kind != TermKind::tv_slope)
        others.push_back(term);
    }
    objective = Objective(objective.shared_likelihood(), others);
  }

  static constexpr std::int64_t npix = 22, nchan = 3;
};

struct Walk {
  Tensor losses, sums, base;
};

Walk walk(Emulated& emulated, Step& step, double learning_rate, int steps) {
  std::vector<Tensor> losses, sums;
  for (int i = 0; i < steps; ++i) {
    const auto report = step.take(learning_rate * (i < steps / 2 ? 1 : 0.5));
    losses.push_back(report.losses);
    sums.push_back(report.parameters_sum);
  }
  return {at::stack(losses), at::stack(sums), emulated.base()};
}

TrainOptions options_of(OptimizerKind kind, double momentum = 0) {
  return TrainOptions().optimizer(kind).momentum(momentum).betas({0.85, 0.99});
}
double rate_of(OptimizerKind kind) { return kind == OptimizerKind::adam ? 0.1 : 2.0; }

}  // namespace

TEMPLATE_TEST_CASE("fused steps of a GPU, emulated, follow eager ones", "[train][fused][cuda][quick]", float, double) {
  const auto options =
      GENERATE(options_of(OptimizerKind::adam), options_of(OptimizerKind::sgd), options_of(OptimizerKind::sgd, 0.8));
  const auto dtype = dtype_of<TestType>();
  const double rate = rate_of(options.optimizer());
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  CAPTURE(to_string(options.optimizer()), options.momentum(), likelihood);
  Emulated fused(dtype, {}, likelihood), eager(dtype, {}, likelihood);
  auto own_step = fused.step(options);
  auto other_step = eager.eager(options);
  const auto own = walk(fused, own_step, rate, 30), expected = walk(eager, other_step, rate, 30);
  CHECK(relative_error(own.losses.select(1, 0), expected.losses.select(1, 0)) < tolerance<TestType>(1e-10, 1e-5));
  CHECK(relative_error(own.losses, expected.losses) < tolerance<TestType>(1e-10, 1e-4));
  CHECK(relative_error(own.base, expected.base) < tolerance<TestType>(1e-7, 1e-3));
  CHECK(relative_error(own.sums, expected.sums) < tolerance<TestType>(1e-9, 1e-4));
}

TEMPLATE_TEST_CASE("emulated problems with weights of their own follow eager ones", "[train][fused][cuda][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  const auto options = options_of(OptimizerKind::adam);
  Emulated fused(dtype, {3}), eager(dtype, {3});
  for (auto* emulated : {&fused, &eager}) {
    emulated->objective = Objective(emulated->objective.shared_likelihood(),
                                    {terms::tv_image(2e-3), terms::sparsity(1).with_weights({0, 1e-3, 1e-2}),
                                     terms::psd(1, 0.05).with_weights({1e-16, 0, 3e-16}), terms::tsv(1).with_weights({0, 0, 0})});
  }
  auto own_step = fused.step(options);
  auto other_step = eager.eager(options);
  const auto own = walk(fused, own_step, 0.1, 10), expected = walk(eager, other_step, 0.1, 10);
  CHECK(relative_error(own.losses, expected.losses) < tolerance<TestType>(1e-10, 1e-4));
  CHECK(relative_error(own.base, expected.base) < tolerance<TestType>(1e-7, 1e-3));
}

TEMPLATE_TEST_CASE("emulated problems with learning rates and ends of their own follow eager ones", "[train][fused][cuda][quick]",
                   float, double) {
  auto options = GENERATE(options_of(OptimizerKind::adam), options_of(OptimizerKind::sgd), options_of(OptimizerKind::sgd, 0.8));
  options.rate_factors({1, 0.25, 0.5}).stop_relative(1e-3).stop_scope(StopScope::each);
  CAPTURE(to_string(options.optimizer()), options.momentum());
  Emulated fused(dtype_of<TestType>(), {3}), eager(dtype_of<TestType>(), {3});
  auto own_step = fused.step(options);
  auto other_step = eager.eager(options);
  const double rate = rate_of(options.optimizer());
  Tensor before;
  for (int i = 0; i < 12; ++i) {
    if (i == 4) own_step.set_stopped({false, true, false}), other_step.set_stopped({false, true, false}), before = fused.base();
    if (i == 7) own_step.set_stopped({true, true, false}), other_step.set_stopped({true, true, false});
    const double now = i < 6 ? rate : rate / 2;
    const auto own = own_step.take(now), expected = other_step.take(now);
    CHECK(relative_error(own.losses, expected.losses) < tolerance<TestType>(1e-10, 1e-4));
    CHECK(relative_error(own.parameters_sum, expected.parameters_sum) < tolerance<TestType>(1e-9, 1e-4));
  }
  CHECK(relative_error(fused.base(), eager.base()) < tolerance<TestType>(1e-7, 1e-3));
  CHECK(torch::equal(fused.base()[1], before[1]));
  CHECK_FALSE(torch::equal(fused.base()[0], before[0]));
  CHECK_THROWS_AS(own_step.set_stopped({true}), ValueError);
  CHECK_THROWS_AS(fused.step(options_of(OptimizerKind::adam).rate_factors({1, 2})), ValueError);
  CHECK_THROWS_AS(fused.step(options_of(OptimizerKind::adam)).set_stopped({true, true, true}), ValueError);
}

TEST_CASE("emulated L-BFGS follows eager L-BFGS, to the same objective", "[train][fused][cuda]") {
  const auto options = options_of(OptimizerKind::lbfgs);
  const std::string likelihood = GENERATE("gridded", "exact");
  const std::vector<std::int64_t> problems = GENERATE(std::vector<std::int64_t>{}, std::vector<std::int64_t>{2});
  CAPTURE(likelihood, problems.size());
  Emulated fused(torch::kFloat64, problems, likelihood), eager(torch::kFloat64, problems, likelihood);
  auto own_step = fused.step(options);
  auto other_step = eager.eager(options);
  for (int i = 0; i < 20; ++i) {
    const auto own = own_step.take(1), expected = other_step.take(1);
    CAPTURE(i);
    CHECK(relative_error(own.losses, expected.losses) < (i < 10 ? 1e-8 : 1e-4));
    CHECK(relative_error(own.parameters_sum, fused.base().sum()) < 1e-12);
  }
  const auto total = own_step.take(1).losses[0].sum().item<double>(),
             expected = other_step.take(1).losses[0].sum().item<double>();
  CHECK(total == Approx(expected).epsilon(1e-6));
}

TEST_CASE("emulated L-BFGS in float32 comes to the objective of float64", "[train][fused][cuda]") {
  const auto options = options_of(OptimizerKind::lbfgs);
  Emulated single(torch::kFloat32), precise(torch::kFloat64);
  auto own_step = single.step(options);
  auto other_step = precise.eager(options);
  const auto own = walk(single, own_step, 1, 20), expected = walk(precise, other_step, 1, 20);
  CHECK(own.losses[19][0][0].item<double>() == Approx(expected.losses[19][0][0].item<double>()).epsilon(1e-4));
}

TEST_CASE("an emulated batch reports each problem and the sum of all parameters", "[train][fused][cuda][quick]") {
  const auto options = options_of(OptimizerKind::adam);
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  CAPTURE(likelihood);
  Emulated fused(torch::kFloat64, {2, 3}, likelihood), eager(torch::kFloat64, {2, 3}, likelihood);
  auto own_step = fused.step(options);
  auto other_step = eager.eager(options);
  const auto own = walk(fused, own_step, 0.1, 4), expected = walk(eager, other_step, 0.1, 4);
  CHECK(own.losses.sizes() == torch::IntArrayRef({4, 2 + std::ssize(fused.objective.terms()), 6}));
  CHECK(relative_error(own.losses, expected.losses) < 1e-11);
  CHECK(relative_error(own.sums, expected.sums) < 1e-11);
}

TEST_CASE("several emulated steps at once are the same steps", "[train][fused][cuda][quick]") {
  const auto options = options_of(OptimizerKind::adam);
  Emulated once(torch::kFloat32), many(torch::kFloat32);
  auto one = once.step(options), several = many.step(options);
  std::vector<Tensor> expected, losses;
  for (int i = 0; i < 100; ++i) expected.push_back(one.take(0.1).losses);
  for (const auto& report : several.take_several(0.1, 100)) losses.push_back(report.losses);
  CHECK(torch::equal(at::stack(losses), at::stack(expected)));
  CHECK(torch::equal(many.base(), once.base()));
}

TEST_CASE("the optimiser's state passes between emulated fused and eager steps", "[train][fused][cuda][quick]") {
  const auto options = GENERATE(options_of(OptimizerKind::adam), options_of(OptimizerKind::sgd, 0.8));
  const double rate = rate_of(options.optimizer());
  CAPTURE(to_string(options.optimizer()));
  Emulated mixed(torch::kFloat64), whole(torch::kFloat64);
  auto expected_step = whole.eager(options);
  for (const double factor : {1.0, 1.0, 1.0, 0.5, 0.5, 0.5}) expected_step.take(rate * factor);

  auto first_step = mixed.eager(options), last_step = mixed.eager(options);
  auto fused_step = mixed.step(options);
  first_step.take(rate), first_step.take(rate);
  fused_step.load_state(first_step.state());
  fused_step.take(rate), fused_step.take(rate * 0.5);
  last_step.load_state(fused_step.state());
  last_step.take(rate * 0.5), last_step.take(rate * 0.5);
  CHECK(relative_error(mixed.base(), whole.base()) < 1e-8);
  CHECK_THROWS_AS(fused_step.load_state({{"something.else", torch::ones({1})}}), FileError);
}

TEST_CASE("the state of L-BFGS passes between emulated fused and eager steps", "[train][fused][cuda][quick]") {
  const auto options = options_of(OptimizerKind::lbfgs);
  Emulated mixed(torch::kFloat64), whole(torch::kFloat64);
  mixed.leave_spectra_out(), whole.leave_spectra_out();
  auto eager_step = mixed.eager(options), last_step = mixed.eager(options), whole_step = whole.eager(options);
  auto fused_step = mixed.step(options);
  CHECK(fused_step.state().empty());
  eager_step.take(1);
  const auto saved = eager_step.state();
  fused_step.load_state(saved);
  const auto own = fused_step.state();
  REQUIRE(own.size() == saved.size());
  for (const auto& [name, tensor] : saved) {  // products are summed in another order
    CHECK((tensor.dim() > 0 ? same(own.at(name), tensor) : relative_error(own.at(name), tensor) < 1e-12));
  }
  fused_step.take(1);
  last_step.load_state(fused_step.state());
  last_step.take(1);
  for (int i = 0; i < 3; ++i) whole_step.take(1);
  CHECK(relative_error(mixed.base(), whole.base()) < 1e-6);
  CHECK_THROWS_AS(fused_step.load_state({{"something.else", torch::ones({1})}}), FileError);
  auto shorter = saved;
  shorter["d"] = torch::ones({3}, torch::kFloat64);
  CHECK_THROWS_AS(fused_step.load_state(shorter), FileError);
}

TEMPLATE_TEST_CASE("emulated L-BFGS goes on from its state bit for bit", "[train][fused][cuda][quick]", float, double) {
  const auto options = options_of(OptimizerKind::lbfgs);
  Emulated emulated(dtype_of<TestType>()), resumed(dtype_of<TestType>());
  auto step = emulated.step(options), again = resumed.step(options);
  step.take(1);
  const auto state = step.state();
  {
    const torch::NoGradGuard no_grad;
    resumed.model->base().copy_(emulated.base());
  }
  step.take(1);
  again.load_state(state);  // later steps have left it alone
  again.take(1);
  CHECK(torch::equal(resumed.base(), emulated.base()));
}

TEMPLATE_TEST_CASE("kernels that agree with autograd are told from those that do not", "[train][fused][cuda][quick]", float,
                   double) {
  Emulated emulated(dtype_of<TestType>());
  auto step = emulated.step(options_of(OptimizerKind::adam));
  const auto before = emulated.base();
  CHECK(step.disagreement().empty());
  CHECK(torch::equal(emulated.base(), before));
  CHECK(step.state().empty());
  {  // The step keeps the data it was made with.
    const torch::NoGradGuard no_grad;
    emulated.objective.likelihood().as_module().named_buffers()["data"].mul_(1.05);
  }
  CHECK_THAT(step.disagreement(), ContainsSubstring("differ from autograd"));
  CHECK(torch::equal(emulated.base(), before));
}

TEST_CASE("the fused step of a GPU names its obstacle", "[train][fused][cuda][quick]") {
  Emulated gridded(torch::kFloat64), exact(torch::kFloat64, {}, "exact");
  CHECK(FusedStep::obstacle_on_gpu(*gridded.model, gridded.objective).empty());
  CHECK(FusedStep::obstacle_on_gpu(*exact.model, exact.objective).empty());
  // A derived class may wait for the device.
  struct Derived : ExactLikelihoodImpl {
    using ExactLikelihoodImpl::ExactLikelihoodImpl;
  };
  const GridCoords coords(0.05, Emulated::npix);
  Emulated derived(torch::kFloat64);
  const std::shared_ptr<Likelihood> likelihood =
      std::make_shared<Derived>(coords, random_visibilities(coords, Emulated::nchan, 7), ChannelMap::cube(Emulated::nchan));
  derived.objective = Objective(likelihood, {});
  CHECK_THAT(FusedStep::obstacle_on_gpu(*derived.model, derived.objective), ContainsSubstring("another class"));
  CHECK_THROWS_AS(derived.step(TrainOptions()), ValueError);
  auto step = gridded.step(TrainOptions());
  step.take(0.1);
  gridded.model->to(torch::kFloat32);
  CHECK_THROWS_AS(step.take(0.1), ValueError);
  gridded.model->to(torch::kFloat64);  // elsewhere in memory than it was
  CHECK_THROWS_AS(step.take(0.1), ValueError);
}

TEST_CASE("a fused step that cannot be recorded says why, and changes nothing", "[train][fused][cuda][quick]") {
  const auto kind = GENERATE(OptimizerKind::adam, OptimizerKind::lbfgs);
  Emulated fused(torch::kFloat64), eager(torch::kFloat64);
  auto step = fused.step(options_of(kind));
  auto expected = eager.eager(options_of(kind));
  const auto before = fused.base();
  {
    const RefusedRecordings refused("no graph today");
    CHECK_THROWS_WITH(step.record(), ContainsSubstring("no graph today"));
    CHECK(refused.count() == 1);
  }
  CHECK(torch::equal(fused.base(), before));
  CHECK(step.state().empty());
  step.record(), step.record();
  const double rate = kind == OptimizerKind::adam ? 0.1 : 1;
  const int steps = kind == OptimizerKind::adam ? 3 : 1;  // of L-BFGS 20 iterations each, which magnify rounding
  for (int i = 0; i < steps; ++i) step.take(rate), expected.take(rate);
  CHECK(relative_error(fused.base(), eager.base()) < 1e-7);
}

TEST_CASE("a fused step notices that the likelihood's data lie elsewhere", "[train][fused][cuda][quick]") {
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  CAPTURE(likelihood);
  Emulated fused(torch::kFloat64, {}, likelihood);
  auto step = fused.step(TrainOptions());
  step.take(0.1);
  auto buffer = fused.objective.likelihood().as_module().named_buffers().front().value();
  const auto kept = buffer.variable_data();
  buffer.set_data(buffer.clone());
  CHECK_THROWS_WITH(step.take(0.1), ContainsSubstring("was moved or cast"));
}

TEMPLATE_TEST_CASE("without memory for autograd the kernels are compared on a small image, and nothing is left changed",
                   "[train][fused][cuda][quick]", float, double) {
  const auto kind = GENERATE(OptimizerKind::adam, OptimizerKind::lbfgs);
  Emulated emulated(dtype_of<TestType>(), {2});
  auto step = emulated.step(options_of(kind));
  const auto before = emulated.base();
  bool failed = true;
  int cases = 0;
  for (int k = 0; failed; k = k * 3 / 2 + 1, ++cases) {
    CAPTURE(k);
    std::string disagreement;
    {
      const FailingAllocator allocator(k);
      disagreement = step.disagreement();
      failed = allocator.has_failed();
    }
    CHECK(disagreement.empty());
    CHECK(torch::equal(emulated.base(), before));
  }
  CHECK(cases > 5);
  step.take(0.1);
  CHECK_FALSE(torch::equal(emulated.base(), before));
}
