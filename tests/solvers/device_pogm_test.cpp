// POGM with all its numbers on a device, against that of the host. The CPU stands in for the device.
#include "catch.h"

#include <cmath>
#include <string>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/solvers/device/device_pogm.h>

#include "convex_problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Every kind of term that POGM takes, and none.
std::vector<Term> terms_named(const std::string& name) {
  if (name == "cube") {
    return {terms::sparsity(0.02),       terms::tv_image(0.01),  terms::tv_channel(0.01),
            terms::group_sparsity(0.01), terms::tv_slope(0.005), terms::spectral_smoothness(1e-3)};
  }
  if (name == "wavelets") return {terms::wavelets(0.02)};
  if (name == "none") return {};
  return every_convex_term();
}

struct HostRun {
  GriddedNet model;
  ConvexObjective function;
  Pogm pogm;
  HostRun(const Tensor& base, const Objective& objective, Momentum momentum)
      : model(positive_model(base)),
        function(model.ptr(), objective, CubeProximal::By::tensors),
        pogm(function, function.images(), {.momentum = momentum}) {}
  void iterate() { pogm.iterate(); }
};

struct DeviceRun {
  GriddedNet model;
  ConvexObjective function;
  DevicePogm pogm;
  DeviceRun(const Tensor& base, const Objective& objective, Momentum momentum)
      : model(positive_model(base)), function(model.ptr(), objective, CubeProximal::By::gpu_kernels), pogm(function, momentum) {
    pogm.prepare();
  }
  Tensor iterate() {
    pogm.iterate(pogm.passes());
    return pogm.keep_report();
  }
};

}  // namespace

TEMPLATE_TEST_CASE("values that stay on a device are those that the host is told", "[solvers][device][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const std::string likelihood = GENERATE("exact", "gridded", "loose"), terms = GENERATE("usual", "cube", "wavelets", "none");
  CAPTURE(likelihood, terms);
  const auto base = base_image(dtype, 5, {3});
  const auto model = positive_model(base);
  const auto by = GENERATE(CubeProximal::By::tensors, CubeProximal::By::gpu_kernels);
  ConvexObjective function(model.ptr(), Objective(likelihood_of(likelihood, dtype), terms_named(terms)), by);
  auto gradient = at::empty_like(function.images()), expected_gradient = at::empty_like(gradient);
  const auto values = function.evaluate_on_device(function.images(), gradient);
  const auto simple = function.evaluate(function.images(), expected_gradient);
  CHECK(torch::equal(gradient, expected_gradient));
  const double bound = tolerance<TestType>(1e-12, 2e-5);
  CHECK(relative_error(values.losses.flatten(), at::tensor(function.losses(), torch::kFloat64)) < bound);
  CHECK((values.simple - at::tensor(simple, torch::kFloat64)).abs().max().item<double>() < bound * function.losses()[0]);
}

TEST_CASE("as long as no problem is to have more passes, POGM on a device goes the host's way", "[solvers][device][quick]") {
  const auto momentum = GENERATE(Momentum::optimized, Momentum::fista);
  const std::string terms = GENERATE("usual", "cube");
  const Objective objective(likelihood_of("exact", torch::kFloat64), terms_named(terms));
  const auto base = base_image(torch::kFloat64, 5, {2});
  HostRun host(base, objective, momentum);
  DeviceRun device(base, objective, momentum);
  for (int k = 0; k < 8; ++k) {  // the passes of the first iterations are in force until a look
    device.iterate();
    host.pogm.iterate();
    const auto passes = host.pogm.state().at("problems").select(1, 2);
    if (passes.max().item<double>() > static_cast<double>(PogmNumbers::first_passes)) break;
    CHECK(relative_error(device.pogm.images(), host.pogm.images()) < 1e-11);
    CHECK(relative_error(device.pogm.state().at("problems"), host.pogm.state().at("problems")) < 1e-12);
    CHECK(relative_error(device.pogm.state().at("curvatures"), host.pogm.state().at("curvatures")) < 1e-9);
  }
  CHECK(device.pogm.iterations() >= 4);
}

TEMPLATE_TEST_CASE("POGM on a device comes as near to the optimum as that of the host", "[solvers][device]", float, double) {
  constexpr int iterations = 100;
  const auto dtype = dtype_of<TestType>();
  const std::string terms = GENERATE("usual", "cube", "wavelets");
  const Objective objective(likelihood_of("exact", dtype), terms_named(terms));
  const auto base = base_image(dtype, 5);
  HostRun host(base, objective, Momentum::optimized);
  DeviceRun device(base, objective, Momentum::optimized);
  const double first = device.pogm.losses()[0].item<double>();
  for (int k = 0; k < iterations; ++k) {
    host.pogm.iterate();
    device.iterate();
  }
  const double own = device.pogm.losses()[0].item<double>(), expected = host.function.losses()[0];
  CAPTURE(terms, first, own, expected);
  CHECK(std::abs(own - expected) < 1e-4 * (first - expected));
}

TEMPLATE_TEST_CASE("where F would rise, its proximal map is gone on with before momentum is given up", "[solvers][device][quick]",
                   HostRun, DeviceRun) {
  const auto momentum = GENERATE(Momentum::optimized, Momentum::fista);
  const Objective objective(likelihood_of("exact", torch::kFloat64), {terms::sparsity(1e-3), terms::tv_image(0.03)});
  TestType run(base_image(torch::kFloat64, 5, {2}), objective, momentum);
  enum : int { t, c, passes, end };
  constexpr double moved = 0, repeats = 2;
  int cured = 0;
  for (int k = 0; k < 40; ++k) {
    const auto before = run.pogm.state();
    const auto images = run.pogm.images().clone();
    run.iterate();
    const auto after = run.pogm.state();
    for (std::int64_t problem = 0; problem < 2; ++problem) {
      const auto number = [&](const NamedTensors& state, int which) {
        return state.at("problems")[problem][which].template item<double>();
      };
      if (number(after, end) == repeats) {
        CHECK(number(before, end) == moved);
        CHECK(torch::equal(run.pogm.images()[problem], images[problem]));
        CHECK(number(after, t) == number(before, t));
        CHECK(number(after, c) == number(before, c));
        CHECK(number(after, passes) >= number(before, passes));
        CHECK(after.at("decreases")[k][problem].template item<double>() == 0);
      }
      if (number(before, end) != repeats || number(after, end) != moved) continue;
      CHECK(relative_error(after.at("z")[problem], before.at("z")[problem]) < 1e-12);
      CHECK(number(after, t) > number(before, t));
      ++cured;
    }
  }
  CHECK(cured > 0);
}

TEST_CASE("POGM on a device goes on from its state bit for bit, whenever that was taken", "[solvers][device][quick]") {
  const Objective objective(likelihood_of("exact", torch::kFloat64), every_convex_term());
  const auto base = base_image(torch::kFloat64, 5, {2});
  const int taken = GENERATE(0, 1, 7, 8, 21);
  DeviceRun whole(base, objective, Momentum::optimized), begun(base, objective, Momentum::optimized);
  for (int k = 0; k < 40; ++k) whole.iterate();
  for (int k = 0; k < taken; ++k) begun.iterate();
  DeviceRun resumed(begun.pogm.images().clone().view_as(base), objective, Momentum::optimized);
  resumed.pogm.load_state(begun.pogm.state(), begun.pogm.losses());
  resumed.function.map().set_dual(begun.function.map().dual());
  for (int k = taken; k < 40; ++k) resumed.iterate();
  CHECK(torch::equal(resumed.pogm.images(), whole.pogm.images()));
  CHECK(torch::equal(resumed.pogm.losses(), whole.pogm.losses()));
}

TEST_CASE("states of POGM pass from the host to a device and back", "[solvers][device][quick]") {
  const auto objective = sparse(torch::kFloat64);
  const auto base = base_image(torch::kFloat64, 5);
  HostRun host(base, objective, Momentum::optimized);
  for (int k = 0; k < 10; ++k) host.pogm.iterate();
  DeviceRun device(host.pogm.images().clone().view_as(base), objective, Momentum::optimized);
  device.pogm.load_state(host.pogm.state(), at::tensor(host.function.losses(), torch::kFloat64));
  CHECK(torch::equal(device.pogm.state().at("problems"), host.pogm.state().at("problems")));
  HostRun back(base, objective, Momentum::optimized);
  back.pogm.load_state(device.pogm.state());
  CHECK(torch::equal(back.pogm.state().at("problems"), host.pogm.state().at("problems")));
  CHECK(torch::equal(back.pogm.state().at("decreases"), host.pogm.state().at("decreases")));
  HostRun fista(base, objective, Momentum::fista);
  CHECK_THROWS_WITH(fista.pogm.load_state(device.pogm.state()), ContainsSubstring("is of pogm"));
}

TEST_CASE("a map that kernels compute takes no numbers of a device", "[solvers][device][quick]") {
  const auto model = positive_model(base_image(torch::kFloat64, 5));
  ConvexObjective function(model.ptr(), sparse(torch::kFloat64));
  DevicePogm pogm(function, Momentum::optimized);
  pogm.prepare();
  CHECK_THROWS_WITH(pogm.iterate(pogm.passes()), ContainsSubstring("numbers of the host"));
}
