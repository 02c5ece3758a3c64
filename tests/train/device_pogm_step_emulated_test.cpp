// POGM as a step of a device, on the CPU: fits looked at in groups, checkpoints, recordings that are refused.
#include "catch.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/fit.h>
#include <mpol_cpp/train/memory_estimate.h>
#include <mpol_cpp/train/steps/device_pogm_step.h>
#include <mpol_cpp/train/steps/pogm_step.h>

#include "../solvers/convex_problems.h"
#include "compare.h"
#include "counting_allocator.h"
#include "problems.h"
#include "rehearsed_recordings.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct EndedPogm {
  TrainResult result;
  Tensor base;
};

template <typename OwnStep>
std::unique_ptr<Step> pogm_step_of(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options) {
  return std::make_unique<OwnStep>(std::move(model), objective, options);
}

TrainOptions pogm_options(std::int64_t epochs) {
  return TrainOptions().optimizer(OptimizerKind::pogm).epochs(epochs).on_divergence(OnDivergence::off);
}

template <typename OwnStep = DevicePogmStep>
EndedPogm pogm_in_groups(const TrainOptions& options, std::int64_t epochs, torch::Dtype dtype = torch::kFloat64) {
  const auto model = positive_model(base_image(dtype, 5, {2}));
  const mpol::detail::Fit::FetchLimits limits{.epochs = epochs, .seconds = 1e9};
  auto result = mpol::detail::Fit(model.ptr(), sparse(dtype), options, pogm_step_of<OwnStep>, limits).run();
  return {std::move(result), model->base().detach().clone()};
}

void check_same_pogm(const EndedPogm& own, const EndedPogm& expected) {
  CHECK(own.result.stop_reason == expected.result.stop_reason);
  CHECK(own.result.epochs == expected.result.epochs);
  CHECK(own.result.loss.values == expected.result.loss.values);
  CHECK(own.result.gap == expected.result.gap);
  CHECK(same_history(own.result.history, expected.result.history));
  CHECK(torch::equal(own.base, expected.base));
}

}  // namespace

TEMPLATE_TEST_CASE("POGM on a device ends the same however many epochs are looked at at once", "[train][device][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  const auto expected = pogm_in_groups(pogm_options(70), 1, dtype);
  for (const std::int64_t epochs : {5, 48}) check_same_pogm(pogm_in_groups(pogm_options(70), epochs, dtype), expected);
}

TEST_CASE("a converged fit on a device has the loss of one on the host", "[train][device]") {
  const auto device = pogm_in_groups(pogm_options(2000), 48), host = pogm_in_groups<PogmStep>(pogm_options(2000), 1);
  REQUIRE(device.result.stop_reason == StopReason::converged);
  CHECK(device.result.loss.values[0] == Approx(host.result.loss.values[0]).epsilon(1e-3));
  REQUIRE(device.result.gap);
  CHECK(*device.result.gap >= device.result.loss.values[0] - host.result.loss.values[0]);
}

TEST_CASE("a callback ends POGM on a device in any epoch of a group", "[train][device][quick]") {
  const std::int64_t last = GENERATE(0, 6, 7, 8, 30);
  const auto options = pogm_options(90).callbacks(
      {[&](const Progress& progress) { return progress.loss.epoch == last ? CallbackAction::stop : CallbackAction::proceed; }});
  const auto expected = pogm_in_groups(options, 1);
  CHECK(expected.result.epochs == last + 1);
  check_same_pogm(pogm_in_groups(options, 48), expected);
}

TEST_CASE("POGM on a device resumes bit for bit, and from the host's checkpoint too", "[train][device][quick]") {
  const TemporaryFolder folder;
  const auto expected = pogm_in_groups(pogm_options(60), 48);
  auto options = pogm_options(60).checkpoint(folder / "fit.safetensors").checkpoint_interval(10);
  const auto stop = [](const Progress& progress) {
    return progress.loss.epoch == 26 ? CallbackAction::stop : CallbackAction::proceed;
  };
  pogm_in_groups(TrainOptions(options).callbacks({stop}), 48);
  const auto resumed = pogm_in_groups(TrainOptions(options).resume(true), 48);
  CHECK(resumed.result.resumed_from == 27);
  check_same_pogm(resumed, expected);

  options.checkpoint(folder / "host.safetensors");
  pogm_in_groups<PogmStep>(TrainOptions(options).callbacks({stop}), 1);
  CHECK(pogm_in_groups(TrainOptions(options).resume(true), 48).result.resumed_from == 27);
}

TEST_CASE("a refused recording of POGM leaves no trace in the fit", "[train][device][quick]") {
  const auto expected = pogm_in_groups(pogm_options(40), 48);
  const RefusedRecordings refused("refused in a test");
  check_same_pogm(pogm_in_groups(pogm_options(40), 48), expected);
  CHECK(refused.count() == 1);
}

TEST_CASE("POGM on a device notices a likelihood that was moved, and problems that are to end alone", "[train][device][quick]") {
  const auto model = positive_model(base_image(torch::kFloat64, 5));
  const auto likelihood = likelihood_of("gridded", torch::kFloat64);
  DevicePogmStep step(model.ptr(), Objective(likelihood, {terms::sparsity(1e-3)}), pogm_options(10));
  step.take(0);
  CHECK(step.launches() == 0);  // nothing is recorded on the CPU
  CHECK_THROWS_WITH(step.set_stopped({true}), ContainsSubstring("end together"));
  likelihood->as_module().to(torch::kFloat32);
  CHECK_THROWS_WITH(step.take(0), ContainsSubstring("moved or cast"));
}

TEST_CASE("the estimate holds what POGM on a device keeps, a recording of its iteration, and the gap beside that",
          "[train][device]") {
  struct Priors {
    std::vector<Term> terms;
    std::int64_t more_duals;
  };
  const auto convex = every_convex_term();
  auto with_cube = convex;
  for (const auto& term : {terms::tv_channel(0.01), terms::group_sparsity(0.01), terms::tv_slope(0.005)})
    with_cube.push_back(term);
  std::int64_t duals = 0;
  for (const auto kind : {TermKind::tv_channel, TermKind::group_sparsity, TermKind::tv_slope}) {
    duals += regularizer_of(kind).dual_images;
  }
  const auto [terms, more_duals] = GENERATE_COPY(Priors{convex, 0}, Priors{with_cube, duals});
  CAPTURE(more_duals);
  const auto objective = Objective(likelihood_of("gridded", torch::kFloat32), terms);
  const auto options = pogm_options(10);
  CountingAllocator memory;
  const auto model = positive_model(base_image(torch::kFloat32, 5, {4}));
  DevicePogmStep step(model.ptr(), objective, options);
  for (int k = 0; k < 12; ++k) step.take(0);
  const double held = memory.now();
  memory.reset_peak();
  step.take(0);
  const double recorded = memory.peak() - held;
  memory.reset_peak();
  step.gap();
  const double beside = memory.peak() - held;
  const double cube = 4.0 * 4 * channels * static_cast<double>(small_grid.npix() * small_grid.npix());
  CAPTURE(held / cube, recorded / cube, beside / cube);
  const auto settings =
      MemorySettings(small_grid.npix(), channels).problems(4).optimizer(OptimizerKind::pogm).more_duals(more_duals).on_gpu(true);
  double fit = 0, recording = 0;
  for (const auto& part : estimate_memory(settings).parts) {
    if (part.name == "fit") fit = part.bytes;
    if (part.name == "recording") recording = part.bytes;
  }
  CHECK(recorded < recording);
  CHECK(recording < 2 * recorded);
  CHECK(held + recorded + beside < fit + recording);
}
