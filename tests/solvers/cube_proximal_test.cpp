// The proximal map of what joins channels.
#include "catch.h"

#include <cmath>

#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/regularizers/group_sparsity.h>
#include <mpol_cpp/regularizers/tv_channel.h>
#include <mpol_cpp/regularizers/tv_image.h>
#include <mpol_cpp/regularizers/tv_slope.h>
#include <mpol_cpp/ops/proximal/gpu/gpu_cube_dual.h>
#include <mpol_cpp/solvers/cube_proximal.h>

#include "compare.h"
#include "forced_isa.h"
#include "instruction_sets.h"
#include "proximal_images.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

using Weights = CubeProximal::Weights;

/// Cubes with a bright middle in some channels.
Tensor noisy_cubes(at::IntArrayRef shape, torch::Dtype dtype, std::uint64_t seed) {
  return noisy_middle(shape, dtype, seed, 2, (shape[shape.size() - 3] + 1) / 2);
}

/// g(x) without positivity, of one problem: the regularizers' own functions, of lengths hardly smoothed.
double simple_part(const Tensor& x, bool hann, const Weights& weights) {
  constexpr double epsilon = 1e-24;
  const auto sky = hann ? ops::hann(x) : x;
  auto value = weights.variation[0] * losses::tv_image(sky, epsilon) + weights.channels[0] * losses::tv_channel(sky, epsilon) +
               weights.spectra[0] * losses::group_sparsity(sky, epsilon);
  if (weights.has_curvature()) value = value + weights.curvature[0] * losses::tv_slope(sky, epsilon);
  return value.item<double>();
}

}  // namespace

TEST_CASE("the map of cubes ends at the minimum: the duality gap closes, whatever joins channels", "[solvers][quick]") {
  const auto hann = GENERATE(false, true);
  const auto masked = GENERATE(false, true);
  constexpr std::int64_t nchan = 18;  // more than go into one piece
  const auto q = noisy_cubes({1, nchan, 12, 12}, torch::kFloat64, 1);
  const auto mask = masked ? (uniform({1, nchan, 12, 12}, torch::kFloat64, 2) < 0.8).to(torch::kFloat64) : Tensor();
  Numbers steps;  // not all the same
  for (std::int64_t c = 0; c < nchan; ++c) steps.push_back(0.5 + 0.1 * static_cast<double>(c % 4));
  const auto step = at::tensor(steps, torch::kFloat64).view({1, nchan, 1, 1});
  for (const auto& weights : {Weights{{0.3}, {0.4}, {0}}, Weights{{0}, {0.5}, {0}}, Weights{{0.2}, {0}, {0.8}},
                              Weights{{0}, {0}, {1.5}}, Weights{{0.2}, {0.3}, {0.5}}, Weights{{0}, {0}, {0}, {0.3}},
                              Weights{{0.2}, {0}, {0}, {0.2}}, Weights{{0.1}, {0.2}, {0.3}, {0.1}}}) {
    CAPTURE(hann, masked, weights.variation[0], weights.channels[0], weights.spectra[0], weights.has_curvature());
    CubeProximal map(q, hann, mask, weights);
    const auto gap = [&](const Tensor& x) {
      auto positive = (q - step * map.slope()).clamp_min(0), allowed = q;
      if (masked) positive = positive * mask, allowed = q * mask;
      const double primal = ((x - q).square() / step).sum().item<double>() / 2 + simple_part(x, hann, weights);
      const double dual = ((q.square() - positive.square()) / step).sum().item<double>() / 2;
      return (primal - dual) / (allowed.square() / step).sum().item<double>();
    };
    const double early = gap(applied(map, q, steps, {2}));
    const auto x = applied(map, q, steps, {weights.has_curvature() ? 6000 : 3000});
    CHECK(x.min().item<double>() >= 0);
    if (masked) CHECK((x * (1 - mask)).abs().max().item<double>() == 0);
    // Dual images are feasible, whence the gap is one.
    const auto dual = map.dual();
    CHECK(dual.narrow(0, 0, 2).square().sum(0).max().item<double>() <= 1 + 1e-12);
    if (weights.channels[0] > 0) CHECK(dual[2].abs().max().item<double>() <= 1);
    if (weights.channels[0] > 0) CHECK(dual[2].select(-3, nchan - 1).abs().max().item<double>() == 0);
    if (weights.spectra[0] > 0) {
      CHECK(dual[weights.channels[0] > 0 ? 3 : 2].square().sum(-3).max().item<double>() <= 1 + 1e-12);
    }
    if (weights.has_curvature()) {
      const auto bent = dual.narrow(0, dual.size(0) - 3, 3);
      CHECK(bent.square().sum(0).max().item<double>() <= 1 + 1e-12);
      for (const std::int64_t edge : {0, 11}) {  // where nothing is counted
        CHECK(bent.select(-1, edge).abs().max().item<double>() == 0);
        CHECK(bent.select(-2, edge).abs().max().item<double>() == 0);
      }
    }
    const double own = gap(x);
    CHECK(own >= -1e-12);
    CHECK(own < 1e-7);
    CHECK(own < 0.1 * early);
  }
}

TEST_CASE("norms of spectra alone shrink spectra, as their closed form does", "[solvers][quick]") {
  const auto q = noisy_cubes({1, 5, 8, 8}, torch::kFloat64, 3);
  CubeProximal map(q, false, {}, {{0}, {0}, {1.2}});
  const auto x = applied(map, q, Numbers(5, 0.5), {2000});
  const auto positive = q.clamp_min(0);  // the map of a norm and positivity: that of the norm of the positive part
  const auto lengths = positive.square().sum({-3}, true).sqrt();
  CHECK(relative_error(x, positive * (1 - 0.6 / lengths).clamp_min(0)) < 1e-6);
}

std::vector<Weights> mixed_weights() {
  return {{{0.3, 0}, {0.4, 0.2}, {0, 0}},
          {{0.3, 0.1}, {0, 0}, {0.5, 0.2}},
          {{0.3, 0.1}, {0.2, 0}, {0.5, 0.7}},
          {{0, 0}, {0, 0}, {0, 0}, {0.2, 0.3}},
          {{0.3, 0}, {0.2, 0.1}, {0, 0.4}, {0.2, 0.3}}};
}

TEMPLATE_TEST_CASE("the kernels of the map of cubes equal its tensor operations, on every instruction set", "[solvers][quick]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto hann = GENERATE(false, true);
  const auto weights = GENERATE(from_range(mixed_weights()));
  for (const auto isa : instruction_sets()) {
    const ForcedIsa forced(to_string(isa));
    for (const std::int64_t n : {2, 9, 17, 40}) {
      const std::int64_t nchan = n == 17 ? 35 : 3;  // three pieces of channels
      CAPTURE(to_string(isa), n, hann);
      const auto q = noisy_cubes({2, nchan, n, n}, dtype, 5);
      const auto mask = n == 17 ? (uniform({2, nchan, n, n}, torch::kFloat64, 2) < 0.8).to(dtype) : Tensor();
      CubeProximal kernels(q, hann, mask, weights), tensors(q, hann, mask, weights, CubeProximal::By::tensors);
      Numbers steps(static_cast<std::size_t>(2 * nchan), 1.0);
      for (std::size_t i = 0; i < steps.size(); i += 2) steps[i] = 0.7;
      for (const auto& passes : {Passes{1, 4}, Passes{7, 3}}) {  // the second begins where the first ended
        const auto x = applied(kernels, q, steps, passes), reference = applied(tensors, q, steps, passes);
        CHECK(relative_error(x, reference) < tolerance<TestType>(1e-12, 2e-5));
        CHECK((kernels.dual() - tensors.dual()).abs().max().template item<double>() < tolerance<TestType>(1e-11, 1e-3));
        CHECK(relative_error(kernels.slope(), tensors.slope()) < tolerance<TestType>(1e-11, 1e-3));
      }
    }
  }
}

TEMPLATE_TEST_CASE("a GPU's kernels of the map of cubes equal its tensor operations, however images are cut", "[solvers][quick]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto hann = GENERATE(false, true);
  const auto weights = GENERATE(from_range(mixed_weights()));
  using ops::CubeDualCut, ops::EmulatedOrder;
  for (const std::int64_t n : {2, 3, 9, 38}) {
    CAPTURE(n, hann);
    const auto q = noisy_cubes({2, 3, n, n}, dtype, 5);
    const auto mask = n == 9 ? (uniform({2, 3, n, n}, torch::kFloat64, 2) < 0.8).to(dtype) : Tensor();
    CubeProximal kernels(q, hann, mask, weights, CubeProximal::By::gpu_kernels);
    CubeProximal tensors(q, hann, mask, weights, CubeProximal::By::tensors);
    ops::GpuCubeDual odd(q, hann, weights, CubeDualCut::odd, EmulatedOrder::descending),
        large(q, hann, weights, CubeDualCut::large);
    const Numbers steps = {0.7, 1, 0.5, 1, 1.5, 1};
    const auto own_steps = at::tensor(steps, torch::kFloat64).view({2, 3});
    for (const auto& passes : {Passes{1, 4}, Passes{7, 0}, Passes{2, 3}}) {  // each begins where the one before ended
      const auto x = applied(kernels, q, steps, passes), reference = applied(tensors, q, steps, passes);
      auto by_odd = torch::full_like(q, std::nan("")), by_large = by_odd.clone();
      odd.apply(q, mask, own_steps, {at::tensor(passes, torch::kInt64), 8}, by_odd);
      large.apply(q, mask, own_steps, {at::tensor(passes, torch::kInt64), 8}, by_large);
      for (const auto& own : {x, by_odd, by_large}) CHECK(relative_error(own, reference) < tolerance<TestType>(1e-12, 2e-5));
      for (const auto& dual : {kernels.dual(), odd.dual(), large.dual()})
        CHECK((dual - tensors.dual()).abs().max().template item<double>() < tolerance<TestType>(1e-11, 1e-3));
    }
  }
}

TEMPLATE_TEST_CASE("without weights between channels the map of cubes is that of total variation, bit for bit",
                   "[solvers][quick]", float, double) {
  const auto q = noisy_cubes({2, 3, 20, 20}, dtype_of<TestType>(), 5);
  CubeProximal map(q, true, {}, {{0.3, 0.2}, {0, 0}, {0, 0}});
  TvProximal variation(q, true, {});
  const Numbers steps = {1, 2, 3, 1, 2, 3};
  Numbers weights;
  for (std::size_t i = 0; i < steps.size(); ++i) weights.push_back(steps[i] * (i < 3 ? 0.3 : 0.2));
  auto x = at::empty_like(q);
  variation.apply(q, weights, {5, 3}, x);
  CHECK(same(applied(map, q, steps, {5, 3}), x));
  CHECK(same(map.dual(), variation.dual()));
  // A cube of one channel has no differences between channels.
  const auto image = q.narrow(0, 0, 1).narrow(1, 0, 1).contiguous();
  CubeProximal of_one(image, true, {}, {{0.3}, {0.7}, {0}});
  CHECK(of_one.dual().size(0) == 2);
}

TEMPLATE_TEST_CASE("the map of cubes has the same bits for any number of threads, and goes on from saved duals",
                   "[solvers][quick]", float, double) {
  const auto q = noisy_cubes({2, 20, 70, 70}, dtype_of<TestType>(), 3);
  const Weights weights{{0.5, 0.1}, {0.2, 0.3}, {0.4, 0.6}, {0.2, 0.1}};
  check_threads_and_saved_dual([&] { return CubeProximal(q, true, {}, weights); }, q, Numbers(40, 0.8));
}
