#include "catch.h"

#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/backends/backend.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>

#include "compare.h"
#include "random.h"
#include "stand_in_device.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords accelerator_grid(0.05, 16);

std::shared_ptr<Likelihood> likelihood_on(torch::Device device, const std::string& name) {
  const auto data = random_visibilities(accelerator_grid, 2, 7);
  const auto channels = ChannelMap::continuum(2);
  const auto moved = [&](auto likelihood) -> std::shared_ptr<Likelihood> {
    likelihood->to(device);
    return likelihood.ptr();
  };
  if (name == "gridded") return moved(GriddedLikelihood(random_dataset(accelerator_grid, 1, 7)));
  if (name == "exact") return moved(ExactLikelihood(accelerator_grid, data, channels));
  if (name == "loose") return moved(LooseLikelihood(accelerator_grid, data, channels, NufftOptions{1e-6}));
  const auto noise = name == "student" ? NoiseModel::student(3)
                     : name == "huber" ? NoiseModel::huber(1)
                                       : NoiseModel::amplitude();
  return moved(NoiseLikelihood(accelerator_grid, data, channels, noise, NufftOptions{1e-6}));
}

}  // namespace

TEST_CASE("an accelerator that only LibTorch knows is a device like others", "[losses][accelerator][quick]") {
  const auto device = stand_in_device();
  const auto backend = find_backend(device.type());
  REQUIRE(backend);
  CHECK(backend->count() == 1);
  CHECK(backend->name() == "standin");
  CHECK(select_device(DeviceRequest::parse("standin:0"), Fallback::error) == device);
  CHECK_THROWS_AS(select_device(DeviceRequest::parse("standin:1"), Fallback::error), DeviceError);
  CHECK(select_device(DeviceRequest::automatic(), Fallback::warn).type() != device.type());  // its free memory is unknown
  CHECK(functional(device.type()));
}

TEMPLATE_TEST_CASE("likelihoods have the CPU's values and gradients on any accelerator", "[losses][accelerator][quick]", float,
                   double) {
  constexpr auto dtype = c10::CppTypeToScalarType<TestType>::value;
  constexpr double tolerance = std::is_same_v<TestType, float> ? 2e-5 : 1e-10;
  const auto name = GENERATE(as<std::string>(), "gridded", "exact", "loose", "student", "huber", "amplitude");
  CAPTURE(name);
  const auto device = stand_in_device();
  const auto sky = uniform({2, 1, 16, 16}, dtype, 5), there = sky.to(device);
  const auto cpu = likelihood_on(torch::kCPU, name), own = likelihood_on(device, name);
  auto expected_gradient = torch::empty_like(sky);
  const auto expected = cpu->value_and_gradient(sky, expected_gradient, Accumulate::overwrite);
  auto gradient = torch::zeros_like(there);
  const auto before = operations_of_stand_in();
  const auto value = own->value_and_gradient(there, gradient, Accumulate::overwrite);
  CHECK(value.device() == device);
  CHECK(gradient.device() == device);
  CHECK(operations_of_stand_in() > before);
  CHECK(relative_error(value.cpu(), expected) < tolerance);
  CHECK(relative_error(gradient.cpu(), expected_gradient) < 10 * tolerance);
  own->value_and_gradient(there, gradient, Accumulate::add);
  CHECK(relative_error(gradient.cpu(), 2 * expected_gradient) < 10 * tolerance);
  CHECK(own->tells_channels() == cpu->tells_channels());
  if (own->tells_channels()) {
    const auto of_channels = own->channel_values_and_gradient(there, gradient, Accumulate::overwrite);
    CHECK(of_channels.device() == device);
    CHECK(relative_error(of_channels.cpu().squeeze(1), expected) < tolerance);
  }
  const auto leaf = there.clone().set_requires_grad(true);
  own->chi_squared(leaf).sum().backward();
  CHECK(relative_error(leaf.grad().cpu(), expected_gradient) < 10 * tolerance);
  CHECK_THROWS_AS(own->chi_squared(sky), DeviceError);
}

TEST_CASE("a fit on an accelerator that only LibTorch knows goes where it goes on the CPU", "[losses][accelerator]") {
  const auto name = GENERATE(as<std::string>(), "exact", "loose", "student");
  CAPTURE(name);
  const auto fit = [&](torch::Device device) {
    const SmallProblem problem{.coords = accelerator_grid, .nchan = 1};
    auto model = problem.model();
    const Objective objective(likelihood_on(torch::kCPU, name), {terms::sparsity(1e-3), terms::tv_image(1e-3)});
    const auto options = TrainOptions().learning_rate(0.1).epochs(8).device(device);
    const auto result = Trainer(model, objective, options).fit();
    if (!device.is_cpu()) CHECK(result.step == StepKind::eager);
    return std::pair(result.loss.total(), model->base().detach().cpu());
  };
  const auto [expected, expected_base] = fit(torch::kCPU);
  const auto [loss, base] = fit(stand_in_device());
  CHECK(loss == Approx(expected).epsilon(1e-8));
  CHECK(relative_error(base, expected_base) < 1e-7);
}
