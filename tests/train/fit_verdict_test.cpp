// What a fit says about itself that stayed with finite numbers.
#include "catch.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/full.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/fit_verdict.h>
#include <mpol_cpp/train/image_trail.h>
#include <mpol_cpp/train/options/stop_criterion.h>
#include <mpol_cpp/train/trainer.h>

#include "problems.h"
#include "temporary_folder.h"
#include "warnings.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// A fit with these totals, the last of which is that of its final image.
TrainResult fit_of(std::vector<double> totals, StopReason reason = StopReason::epochs) {
  TrainResult fit;
  fit.columns = {"total", "nll"};
  fit.epochs = static_cast<std::int64_t>(totals.size()) - 1;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    EpochLoss loss{static_cast<std::int64_t>(i), 0.3, {totals[i], totals[i]}};
    if (i + 1 == totals.size()) fit.loss = loss;
    else fit.history.push_back(loss);
  }
  fit.stop_reason = reason;
  return fit;
}

/// Falls from 10 to 1 within some epochs of a hundred, and stays there.
std::vector<double> falling_totals(double epochs_to_fall) {
  std::vector<double> totals;
  for (int epoch = 0; epoch <= 100; ++epoch) totals.push_back(1 + 9 * std::exp(-epoch / epochs_to_fall));
  return totals;
}

const mpol::detail::FinalImage bright_image{.flux = 2.0, .problems = 1, .dead = 0, .empty_nll = 20.0};
const mpol::detail::FinalImage dead_image{.flux = 0.0, .problems = 1, .dead = 1, .empty_nll = 20.0};
const mpol::detail::FluxMark settled_flux{90, 2.0};

/// Far too long a step of gradient descent.
TrainOptions exploding_descent() {
  return TrainOptions().optimizer(OptimizerKind::sgd).learning_rate(1e7).epochs(30).on_divergence(OnDivergence::off);
}

}  // namespace

TEST_CASE("a fit that settles has nothing to say", "[train][verdict][quick]") {
  const auto verdict = mpol::detail::judge_fit(fit_of(falling_totals(5)), bright_image, settled_flux);
  CHECK_FALSE(verdict.diverged);
  CHECK(verdict.warnings.empty());
  CHECK(mpol::detail::judge_fit(fit_of({10, 8, 7}), bright_image, {}).warnings.empty());  // too short to tell
  CHECK(mpol::detail::judge_fit({}, bright_image, {}).warnings.empty());
}

TEST_CASE("a fit that was to converge and did not says so, and what was still moving", "[train][verdict][quick]") {
  const auto warnings = [](StopReason reason, std::optional<double> change) {
    auto image = bright_image;
    image.change = change;
    const mpol::detail::FluxMark half{50, 1.0};
    return mpol::detail::judge_fit(fit_of(falling_totals(5), reason), image, half, 1e-3).warnings;
  };
  CHECK(warnings(StopReason::converged, 0.05).empty());
  REQUIRE(warnings(StopReason::epochs, 0.05).size() == 1);
  CHECK_THAT(
      warnings(StopReason::epochs, 0.05)[0],
      ContainsSubstring("had not converged to a tolerance of 0.001 when its 100 epochs ended; from epoch 50 on the image "
                        "changed by 5 % (root mean square) and the flux went from 1 to 2 Jy (+100.0 %): take more epochs"));
  CHECK_THAT(warnings(StopReason::epochs, {})[0], ContainsSubstring("when its 100 epochs ended: take more epochs"));
}

TEST_CASE("the trail of a fit tells how its image moved over the second half of the epochs", "[train][verdict][quick]") {
  mpol::detail::ImageTrail trail;
  const auto image_after = [](std::int64_t epochs) {  // two problems, of which the second moves: its peak is 4, its flux 16
    auto sky = at::full({2, 1, 2, 2}, 4.0, torch::kFloat32);
    sky[1].sub_(1 / static_cast<double>(epochs));
    return sky;
  };
  std::vector<std::int64_t> seen;
  for (std::int64_t epochs = 1; epochs <= 400; ++epochs) {
    if (epochs != trail.next()) continue;
    trail.record(image_after(epochs));
    seen.push_back(epochs);
    CHECK(trail.newest() == epochs);
    CHECK(trail.change().has_value() == (seen.size() >= 5));
  }
  CHECK(seen.front() == 16);
  REQUIRE(seen.size() > 12);
  const auto change = trail.change().value();
  CHECK(change.since == seen[seen.size() - 5]);
  const double ratio = static_cast<double>(seen.back()) / static_cast<double>(change.since);
  CHECK(ratio > 1.9);
  CHECK(ratio < 2.1);
  const double moved = 1 / static_cast<double>(change.since) - 1 / static_cast<double>(seen.back());
  const double peak = 4 - 1 / static_cast<double>(seen.back());
  CHECK(change.image == Approx(moved / peak).epsilon(1e-4));
  CHECK(change.flux == Approx(moved / peak).epsilon(1e-4));
  CHECK(change.flux_before == Approx(32 - 4 / static_cast<double>(change.since)).epsilon(1e-6));
  CHECK(trail.still_images(1.01 * moved / peak, 1.01 * moved / peak) == std::vector{true, true});
  CHECK(trail.still_images(0.99 * moved / peak, 1.01 * moved / peak) == std::vector{true, false});
  CHECK(trail.still_images(1.01 * moved / peak, 0.99 * moved / peak) == std::vector{true, false});
  mpol::detail::ImageTrail other;
  CHECK(other.still_images(1, 1).empty());
  other.load_state(trail.state());
  CHECK(other.next() == trail.next());
  CHECK(other.change()->image == change.image);
  other.load_state({});
  CHECK(other.next() == 16);
  CHECK_THROWS_AS(other.load_state({{"epochs", torch::tensor({16, 20}, torch::kInt64)}}), FileError);
}

TEST_CASE("losses have settled when their means fall no more than the tolerance, of 200 epochs or more",
          "[train][verdict][quick]") {
  const auto settled_after = [](auto total, double tolerance) -> std::int64_t {
    LossHistory history;
    for (std::int64_t epoch = 0; epoch < 5000; ++epoch) {
      if (has_settled(history, tolerance)) return epoch;
      const double value = total(epoch);
      history.push_back({epoch, 0.3, {value, value - 1}});  // the regularizers have 1
    }
    return -1;
  };
  CHECK(settled_after([](std::int64_t) { return 3.0; }, 1e-3) == 200);
  // exp(-k/200) falls below 1e-3 at k = 1382, a little later in the mean over a twentieth before.
  const auto falling = settled_after([](std::int64_t epoch) { return 3 + std::exp(-static_cast<double>(epoch) / 100); }, 1e-3);
  CHECK(falling > 1382);
  CHECK(falling < 1465);
  CHECK(settled_after([](std::int64_t epoch) { return 3 + (epoch % 2 == 0 ? 0.5 : -0.5); }, 1e-3) == 200);  // it swings
  CHECK(settled_after([](std::int64_t epoch) { return 10 - 1e-3 * static_cast<double>(epoch); }, 1e-3) == -1);
}

TEST_CASE("a loss that explodes and stays above its beginning has diverged", "[train][verdict][quick]") {
  const auto verdict = mpol::detail::judge_fit(fit_of({17, 5e10, 4e9, 18}), bright_image, {});
  CHECK(verdict.diverged);
  CHECK_THAT(verdict.diagnosis, ContainsSubstring("17 at first") && ContainsSubstring("5e+10 at epoch 1") &&
                                    ContainsSubstring("smaller learning rate than 0.3"));
  // It comes back below: the way was wild, the image is not.
  CHECK_FALSE(mpol::detail::judge_fit(fit_of({17, 5e10, 4e9, 12}), bright_image, {}).diverged);
  // No better than where it began, nor than an empty image.
  CHECK(mpol::detail::judge_fit(fit_of({17, 5e10, 4e9, 16.9}), bright_image, {}).diverged);
  CHECK(mpol::detail::judge_fit(fit_of({170, 5e10, 4e9, 19.9}), bright_image, {}).diverged);
  // Back below, but with an empty image.
  CHECK(mpol::detail::judge_fit(fit_of({17, 5e10, 4e9, 12}), dead_image, {}).diverged);
  CHECK(mpol::detail::judge_fit(fit_of({17, 40, 18}), dead_image, {}).diverged);
  // A start near the truth, from which the first steps lead away: beside an empty image that is little.
  CHECK_FALSE(mpol::detail::judge_fit(fit_of({1e-8, 10, 2e-8}), bright_image, {}).diverged);
}

TEST_CASE("a loss above its beginning and a dead image are warnings", "[train][verdict][quick]") {
  const auto above = mpol::detail::judge_fit(fit_of({17, 16, 18}), bright_image, {});
  CHECK_FALSE(above.diverged);
  REQUIRE(above.warnings.size() == 1);
  CHECK_THAT(above.warnings[0], ContainsSubstring("18 after 2 epochs") && ContainsSubstring("17 before the first"));
  const auto died = mpol::detail::judge_fit(fit_of({17, 16, 15}), dead_image, {});
  CHECK_FALSE(died.diverged);
  REQUIRE(died.warnings.size() == 1);
  CHECK_THAT(died.warnings[0], ContainsSubstring("the image has died") && ContainsSubstring("flux 0 Jy"));
  CHECK(mpol::detail::judge_fit(fit_of({17, 16, 18}, StopReason::interrupted), dead_image, {}).warnings.empty());
  const auto converged = mpol::detail::judge_fit(fit_of({17, 16, 15}, StopReason::converged), dead_image, {}, 1e-3);
  REQUIRE(converged.warnings.size() == 1);  // the optimum is empty
  CHECK_THAT(converged.warnings[0], ContainsSubstring("the image is empty"));
  CHECK(mpol::detail::judge_fit(fit_of({17, 16, 18}, StopReason::converged), bright_image, {}, 1e-3).warnings.empty());
  const auto nothing = mpol::detail::judge_fit(fit_of({17, 16, 18}, StopReason::converged), dead_image, {}, 1e-3);
  CHECK_FALSE(nothing.diverged);  // noise alone
  CHECK(nothing.warnings == converged.warnings);
  CHECK(mpol::detail::judge_fit(fit_of({17, 16, 18}), dead_image, {}).diverged);
  // Rounding is no rise.
  CHECK(mpol::detail::judge_fit(fit_of({17, 17, 17 * (1 + 1e-7)}), bright_image, {}).warnings.empty());
}

TEST_CASE("a fit that was still moving says so with numbers and a remedy", "[train][verdict][quick]") {
  const auto slow = mpol::detail::judge_fit(fit_of(falling_totals(60)), bright_image, mpol::detail::FluxMark{90, 2.5});
  REQUIRE(slow.warnings.size() == 1);
  CHECK_THAT(slow.warnings[0], ContainsSubstring("100 epochs") && ContainsSubstring("over the last 10") &&
                                   ContainsSubstring("the flux went from 2.5 to 2 Jy (-20.0 %)") &&
                                   ContainsSubstring("the mean loss went from") && ContainsSubstring("--start dirty"));
  // The flux of pixels of either sign may be nothing beside that of their magnitudes.
  CHECK(mpol::detail::judge_fit(fit_of(falling_totals(5)), bright_image, mpol::detail::FluxMark{90, 2.5, 100}).warnings.empty());
  const auto by_flux = mpol::detail::judge_fit(fit_of(falling_totals(5)), bright_image, mpol::detail::FluxMark{90, 2.5});
  REQUIRE(by_flux.warnings.size() == 1);
  CHECK_THAT(by_flux.warnings[0], !ContainsSubstring("loss"));
  CHECK(mpol::detail::judge_fit(fit_of(falling_totals(5)), bright_image, mpol::detail::FluxMark{90, 2.01}).warnings.empty());
  // Converged by the user's own criterion; a flux of another moment; nothing known of the flux.
  CHECK(mpol::detail::judge_fit(fit_of(falling_totals(60), StopReason::converged), bright_image, mpol::detail::FluxMark{90, 2.5})
            .warnings.empty());
  CHECK(mpol::detail::judge_fit(fit_of(falling_totals(5)), bright_image, mpol::detail::FluxMark{80, 2.5}).warnings.empty());
  CHECK(mpol::detail::judge_fit(fit_of(falling_totals(5)), bright_image, {}).warnings.empty());
}

TEMPLATE_TEST_CASE("gradient descent that explodes within the finite numbers has diverged", "[train][verdict][quick]", float,
                   double) {
  const std::string likelihood = GENERATE("gridded", "exact", "loose");
  const auto step = GENERATE(StepKind::fused, StepKind::eager);
  CAPTURE(likelihood, to_string(step));
  const SmallProblem problem{.dtype = c10::CppTypeToScalarType<TestType>::value, .likelihood = likelihood};
  auto model = problem.model();
  const auto result = Trainer(model, problem.objective(), exploding_descent().step(step)).fit();
  double largest = 0;
  for (const auto& loss : result.history) largest = std::max(largest, loss.total());
  REQUIRE(largest > 1e3 * result.history.front().total());
  CHECK(result.stop_reason == StopReason::diverged);
  CHECK(result.epochs == 30);
  CHECK(model->base().isfinite().all().template item<bool>());
  CHECK(std::isfinite(result.loss.total()));
  CHECK_THAT(result.diagnosis, ContainsSubstring("smaller learning rate than 1e+07"));
}

TEST_CASE("a fit that diverged is logged, thrown, or left to the result", "[train][verdict][quick]") {
  const SmallProblem problem;
  const auto nan = Term("mine", 1.0, [](const ModelOutput& out) { return out.sky.sum({-3, -2, -1}) * NAN; });
  const bool finite = GENERATE(false, true);
  const auto fit = [&](OnDivergence what) {
    const auto objective = finite ? problem.objective() : problem.objective({nan});
    return Trainer(problem.model(), objective, exploding_descent().on_divergence(what)).fit();
  };
  const mpol::testing::Warnings warnings;
  CHECK(fit(OnDivergence::off).stop_reason == StopReason::diverged);
  CHECK(warnings.said().empty());
  const auto result = fit(OnDivergence::warn);
  REQUIRE(warnings.said().size() == 1);
  CHECK(warnings.said()[0] == "the fit has diverged: " + result.diagnosis);
  CHECK_THROWS_AS(fit(OnDivergence::error), DivergedError);
  CHECK_THROWS_WITH(fit(OnDivergence::error), result.diagnosis);
  CHECK(warnings.said().size() == 1);
  CHECK(TrainOptions().on_divergence() == OnDivergence::warn);
}

TEMPLATE_TEST_CASE("an image that a regulariser has killed is a warning", "[train][verdict][quick]", float, double) {
  const SmallProblem problem{.dtype = c10::CppTypeToScalarType<TestType>::value};
  const Objective objective(random_likelihood("gridded", problem.coords, 2, problem.dtype), {terms::sparsity(1e6)});
  const mpol::testing::Warnings warnings;
  auto model = problem.model({2});
  const auto result = Trainer(model, objective, TrainOptions().learning_rate(20).epochs(60)).fit();
  CHECK(result.stop_reason == StopReason::epochs);
  CHECK(result.loss.total() < result.history.front().total());
  REQUIRE_FALSE(result.warnings.empty());
  CHECK_THAT(result.warnings[0], ContainsSubstring("the image of 2 of 2 problems has died"));
  CHECK(warnings.said() == result.warnings);
}

TEST_CASE("a fit that is cut short warns, and one that converged does not", "[train][verdict]") {
  const SmallProblem problem;
  const mpol::testing::Warnings warnings;
  const auto slow = Trainer(problem.model(), problem.objective(), TrainOptions().learning_rate(0.02).epochs(30)).fit();
  REQUIRE(slow.warnings.size() == 1);
  CHECK_THAT(slow.warnings[0], ContainsSubstring("still moving when its 30 epochs ended: over the last 3 "));
  CHECK(warnings.said() == slow.warnings);
  const auto stopped = TrainOptions().learning_rate(0.1).epochs(4000).stop_relative(1e-2);
  const auto converged = Trainer(problem.model(), problem.objective(), stopped).fit();
  CHECK(converged.stop_reason == StopReason::converged);
  CHECK(converged.warnings.empty());
  CHECK(Trainer(problem.model(), problem.objective(), TrainOptions().learning_rate(0.02).epochs(19)).fit().warnings.empty());
}

TEMPLATE_TEST_CASE("a resumed fit says what an uninterrupted one says", "[train][verdict]", float, double) {
  const std::string likelihood = GENERATE("gridded", "exact");
  const auto step = GENERATE(StepKind::fused, StepKind::eager);
  CAPTURE(likelihood, to_string(step));
  const SmallProblem problem{.dtype = c10::CppTypeToScalarType<TestType>::value, .likelihood = likelihood};
  const mpol::testing::Warnings silent;
  const auto options = TrainOptions().learning_rate(0.02).epochs(40).step(step);
  auto model = problem.model();
  const auto whole = Trainer(model, problem.objective(), options).fit();
  REQUIRE(whole.warnings.size() == 1);
  CHECK_THAT(whole.warnings[0], ContainsSubstring("the flux went from") && ContainsSubstring("the mean loss went from"));
  for (const std::int64_t stop : {1, 35, 36, 37, 39, 40}) {  // the flux is taken after 36
    CAPTURE(stop);
    const TemporaryFolder folder;
    const auto path = folder / "checkpoint.safetensors";
    const auto part = TrainOptions(options).checkpoint(path);
    auto resumed_model = problem.model();
    Trainer(resumed_model, problem.objective(), TrainOptions(part).interrupted([stop, done = std::int64_t{0}]() mutable {
      return ++done == stop;
    })).fit();
    auto later = problem.model();
    const auto resumed = Trainer(later, problem.objective(), TrainOptions(part).resume(true)).fit();
    CHECK(resumed.resumed_from == stop);
    CHECK(resumed.warnings == whole.warnings);
    CHECK(torch::equal(later->base(), model->base()));
  }
}

TEST_CASE("taking the flux leaves the random numbers of a fit alone", "[train][verdict][quick]") {
  const SmallProblem problem;
  const auto noisy = Term("noisy", 1e-3, [](const ModelOutput& out) {
    return (out.sky * at::rand_like(out.sky)).sum({-3, -2, -1});
  });
  const mpol::testing::Warnings silent;
  const auto fit = [&](std::int64_t epochs) {
    return Trainer(problem.model(), problem.objective({noisy}), TrainOptions().learning_rate(0.02).epochs(epochs)).fit().history;
  };
  auto longer = fit(60);  // its flux is taken later
  longer.resize(30);
  CHECK(same_history(fit(30), longer));
}

TEST_CASE("a loss whose falls shrink too slowly may still have far to fall", "[train][verdict][quick]") {
  const auto far_after = [](auto total, std::int64_t epochs, double tolerance) {
    LossHistory history;
    for (std::int64_t epoch = 0; epoch <= epochs; ++epoch) {
      const double value = total(static_cast<double>(epoch));
      history.push_back({epoch, 0.3, {value, value - 1}});  // the regularizers have 1
    }
    return may_fall_far(history, tolerance);
  };
  // Of 1/k the last octave's fall is what is left: at k = 100 a hundredth.
  const auto harmonic = [](double k) { return 3 + 1 / std::max(k, 1.0); };
  CHECK(far_after(harmonic, 100, 0.0099));
  CHECK_FALSE(far_after(harmonic, 100, 0.0101));
  // Of k^(-1/4) more is left than fell: 0.32 at k = 100, of which the last octave had 0.06.
  const auto slow = [](double k) { return 3 + std::pow(std::max(k, 1.0), -0.25); };
  CHECK(far_after(slow, 100, 0.3));
  CHECK_FALSE(far_after(slow, 100, 0.33));
  // One that falls the faster the longer it goes on: unless that is nothing beside the tolerance.
  const auto faster = [](double k) { return 3 - 1e-6 * k * k; };
  CHECK(far_after(faster, 100, 0.07));
  CHECK_FALSE(far_after(faster, 100, 0.08));
  CHECK_FALSE(far_after([](double) { return 3.0; }, 100, 1e-9));
}
