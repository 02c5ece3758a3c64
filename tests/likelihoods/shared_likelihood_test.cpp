#include "catch.h"

#include <cmath>
#include <memory>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/likelihoods/shared/shared_likelihood.h>

#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords shared_grid(0.05, 16);

/// Two CPUs, the second half as fast, and two image channels.
struct SharedProblem {
  Visibilities visibilities = random_visibilities(shared_grid, 2, 7);
  ChannelMap channels = ChannelMap::cube(2);
  std::shared_ptr<DeviceGroup> devices =
      std::make_shared<DeviceGroup>(std::vector<torch::Device>{torch::kCPU, torch::kCPU}, std::vector<double>{1, 0.5});

  SharedLikelihood shared(NoiseModel noise) const {
    return SharedLikelihood(devices, shared_grid, visibilities, channels,
                            [&](const Visibilities& share, torch::Device) { return whole_of(share, noise); });
  }
  std::shared_ptr<Likelihood> whole(NoiseModel noise) const { return whole_of(visibilities, noise); }

 private:
  std::shared_ptr<Likelihood> whole_of(const Visibilities& data, NoiseModel noise) const {
    if (noise.kind == NoiseModel::Kind::gaussian) return LooseLikelihood(shared_grid, data, channels).ptr();
    return NoiseLikelihood(shared_grid, data, channels, noise).ptr();
  }
};

double distance(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).to(torch::kFloat64).item<double>();
}

}  // namespace

TEMPLATE_TEST_CASE("a likelihood shared by devices is that of all samples", "[likelihoods][devices][quick]", float, double) {
  const auto dtype = c10::CppTypeToScalarType<TestType>::value;
  const double tolerance = dtype == torch::kFloat64 ? 1e-12 : 2e-5;
  const SharedProblem problem;
  const auto noise = GENERATE(NoiseModel::gaussian(), NoiseModel::student(4));
  auto shared = problem.shared(noise);
  const auto whole = problem.whole(noise);
  CHECK(shared->shares()[0].size() == 534);
  CHECK(shared->shares()[1].size() == 266);
  CHECK(shared->normalizer() == whole->normalizer());
  CHECK(shared->samples() == whole->samples());
  CHECK(shared->visibilities_count() == whole->visibilities_count());
  CHECK(shared->is_quadratic() == whole->is_quadratic());
  CHECK(shared->name() == whole->name());
  CHECK(shared->memory_bytes() > 0);
  const auto sky = uniform({3, 2, shared_grid.npix(), shared_grid.npix()}, torch::kFloat64, 11).to(dtype);
  auto own = at::ones_like(sky), wanted = at::ones_like(sky);
  for (const auto accumulate : {Accumulate::overwrite, Accumulate::add}) {
    const auto value = shared->value_and_gradient(sky, own, accumulate);
    const auto wanted_value = whole->value_and_gradient(sky, wanted, accumulate);
    CHECK(value.scalar_type() == torch::kFloat64);
    CHECK(distance(value, wanted_value) < tolerance);
    CHECK(distance(own, wanted) < tolerance);
  }
  // By autograd, with other weights of the problems.
  const auto variable = sky.clone().requires_grad_(true);
  const auto weights = uniform({3}, dtype, 13);
  (shared->chi_squared(variable) * weights).sum().backward();
  shared->value_and_gradient(sky, own, Accumulate::overwrite);
  CHECK(distance(variable.grad(), own * weights.view({3, 1, 1, 1})) < tolerance);
}

TEST_CASE("devices with samples to share make the fit of one", "[likelihoods][devices]") {
  const SharedProblem problem;
  const auto base = normal({2, shared_grid.npix(), shared_grid.npix()}, torch::kFloat64, 3).abs();
  const auto fit = [&](const std::shared_ptr<Likelihood>& likelihood) {
    const GriddedNet model(GriddedNetOptions(shared_grid).base_cube(base.clone()).dtype(torch::kFloat64));
    const Objective objective(likelihood, {terms::tv_image(1e-5), terms::tv_channel(1e-5)});
    Trainer(model, objective, TrainOptions().epochs(30)).fit();
    return model->base().detach().clone();
  };
  CHECK(distance(fit(problem.shared(NoiseModel::gaussian()).ptr()), fit(problem.whole(NoiseModel::gaussian()))) < 1e-12);
}

TEST_CASE("a device without samples is left out, and what a share throws is thrown", "[likelihoods][devices][quick]") {
  SharedProblem problem;
  problem.visibilities = problem.visibilities.select(torch::tensor({5}, torch::kInt64));
  auto shared = problem.shared(NoiseModel::gaussian());
  CHECK(shared->shares()[1].is_empty());
  const auto sky = uniform({2, shared_grid.npix(), shared_grid.npix()}, torch::kFloat64, 11);
  auto own = at::empty_like(sky), wanted = at::empty_like(sky);
  const auto value = shared->value_and_gradient(sky, own, Accumulate::overwrite);
  CHECK(distance(value, problem.whole(NoiseModel::gaussian())->value_and_gradient(sky, wanted, Accumulate::overwrite)) < 1e-12);
  CHECK(distance(own, wanted) < 1e-12);
  CHECK_THROWS_AS(shared->chi_squared(sky[0]), ShapeError);
  auto narrow = at::empty_like(sky[0]);
  CHECK_THROWS_AS(shared->value_and_gradient(sky, narrow, Accumulate::overwrite), ShapeError);
  const auto refuse = [](const Visibilities&, torch::Device) -> std::shared_ptr<Likelihood> { throw DataError("bad share"); };
  CHECK_THROWS_WITH(SharedLikelihood(problem.devices, shared_grid, problem.visibilities, problem.channels, refuse), "bad share");
}

TEST_CASE("samples are shared by speed, each once", "[likelihoods][devices][quick]") {
  for (const std::int64_t count : {0, 1, 7, 999, 1000, 100000007}) {
    const auto shares = sample_shares(count, {1, 0.25, 0.25});
    std::int64_t next = 0;
    for (const auto& share : shares) {
      CHECK(share.begin == next);
      next = share.end;
    }
    CHECK(next == count);
    if (count > 100) CHECK(static_cast<double>(shares[0].size()) == Approx(static_cast<double>(count) * 2 / 3).epsilon(0.01));
  }
}
