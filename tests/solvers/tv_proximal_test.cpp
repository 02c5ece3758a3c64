#include "catch.h"

#include <cmath>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/solvers/tv_proximal.h>

#include "compare.h"
#include "forced_isa.h"
#include "instruction_sets.h"
#include "proximal_images.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Images of one channel, with bright and dark parts.
Tensor noisy_images(at::IntArrayRef shape, torch::Dtype dtype, std::uint64_t seed) {
  return noisy_middle(shape, dtype, seed, 3, shape[shape.size() - 3]);
}

Tensor seen(const Tensor& images, bool hann) { return hann ? ops::hann(images) : images; }

/// sum |D S x| over the block in which both differences exist, of one image.
double variation(const Tensor& x, bool hann) {
  const auto u = seen(x, hann).squeeze();
  const auto n = u.size(-1) - 1;
  const auto block = [&](std::int64_t row, std::int64_t column) { return u.narrow(0, row, n).narrow(1, column, n); };
  return ((block(1, 0) - block(0, 0)).square() + (block(0, 1) - block(0, 0)).square()).sqrt().sum().item<double>();
}

/// How far the primal value of x is above the dual value of p: 0 only at the argument of the minimum.
double duality_gap(const Tensor& q, double k, const Tensor& x, const Tensor& p, bool hann, const Tensor& mask) {
  CHECK(p.square().sum(0).max().item<double>() <= 1 + 1e-12);
  const auto n = q.size(-1);
  auto rows = p[0].clone(), columns = p[1].clone();
  for (auto* part : {&rows, &columns}) {
    part->select(-1, n - 1).zero_();
    part->select(-2, n - 1).zero_();
  }
  const auto adjoint = at::constant_pad_nd(rows.narrow(-2, 0, n - 1), {0, 0, 1, 0}) - rows +
                       at::constant_pad_nd(columns.narrow(-1, 0, n - 1), {1, 0}) - columns;
  auto positive = (q - k * seen(adjoint, hann)).clamp_min(0);
  auto allowed = q;
  if (mask.defined()) positive = positive * mask, allowed = q * mask;
  const double primal = (x - q).square().sum().item<double>() / 2 + k * variation(x, hann);
  const double dual = (q.square().sum() - positive.square().sum()).item<double>() / 2;
  return (primal - dual) / allowed.square().sum().item<double>();
}

}  // namespace

TEST_CASE("the proximal map of total variation ends at the minimum: the duality gap closes", "[solvers][quick]") {
  const auto hann = GENERATE(false, true);
  const auto masked = GENERATE(false, true);
  const auto q = noisy_images({1, 1, 21, 21}, torch::kFloat64, 1);
  const auto mask = masked ? (uniform({1, 1, 21, 21}, torch::kFloat64, 2) < 0.8).to(torch::kFloat64) : Tensor();
  for (const double k : {0.05, 0.4, 3.0}) {
    CAPTURE(hann, masked, k);
    TvProximal map(q, hann, mask);
    const auto first = applied(map, q, {k}, {2});
    const double early = duality_gap(q, k, first, map.dual(), hann, mask);
    const auto x = applied(map, q, {k}, {4000});
    CHECK(x.min().item<double>() >= 0);
    if (masked) CHECK((x * (1 - mask)).abs().max().item<double>() == 0);
    const double gap = duality_gap(q, k, x, map.dual(), hann, mask);
    CHECK(gap >= -1e-12);
    CHECK(gap < 1e-6);
    CHECK(gap < 0.1 * early);
  }
}

TEMPLATE_TEST_CASE("the kernels of the proximal map equal its tensor operations, on every instruction set", "[solvers][quick]",
                   float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto hann = GENERATE(false, true);
  for (const auto isa : instruction_sets()) {
    const ForcedIsa forced(to_string(isa));
    for (const std::int64_t n : {2, 3, 8, 17, 34, 50}) {
      CAPTURE(to_string(isa), n, hann);
      const auto q = noisy_images({3, 2, n, n}, dtype, 5);
      const auto mask = n == 17 ? (uniform({3, 2, n, n}, torch::kFloat64, 2) < 0.8).to(dtype) : Tensor();
      TvProximal kernels(q, hann, mask), tensors(q, hann, mask, TvProximal::By::tensors);
      const Numbers weights = {0.3, 0.3, 1, 0.2, 0, 0.1};
      for (const auto& passes : {Passes{1, 4, 2}, Passes{3, 0, 7}}) {  // the second begins where the first ended
        const auto x = applied(kernels, q, weights, passes), reference = applied(tensors, q, weights, passes);
        CHECK(relative_error(x, reference) < tolerance<TestType>(1e-12, 2e-5));
        const auto own = kernels.dual(), other = tensors.dual();
        CHECK((own - other).abs().max().template item<double>() < tolerance<TestType>(1e-11, 1e-3));
      }
    }
  }
}

TEMPLATE_TEST_CASE("the proximal map is firmly non-expansive and satisfies Moreau's identity", "[solvers][quick]", float,
                   double) {
  const auto dtype = dtype_of<TestType>();
  constexpr double k = 0.5;
  const auto q = noisy_images({1, 1, 16, 16}, dtype, 1), r = noisy_images({1, 1, 16, 16}, dtype, 8);
  for (const bool hann : {false, true}) {
    TvProximal map(q, hann, {}), other(r, hann, {});
    const auto x = applied(map, q, {k}, {2000}), y = applied(other, r, {k}, {2000});
    const auto moved = x - y;
    CHECK(inner_product(moved, moved) <= inner_product(moved, q - r) * (1 + 1e-5));
    // What the map takes away, q - x, is a subgradient of g(x) = k TV(S x) + [x >= 0]: <q - x, z - x> <= g(z) - g(x) for any z.
    const auto taken = (q - x).to(torch::kFloat64), own = x.to(torch::kFloat64);
    for (const std::uint64_t seed : {11, 12, 13}) {
      const auto z = (own + 0.3 * normal({1, 1, 16, 16}, torch::kFloat64, seed)).clamp_min(0);
      CHECK(inner_product(taken, z - own) <= k * (variation(z, hann) - variation(own, hann)) + 1e-4);
    }
    // Moreau for g of degree one: x is the part of q - k S D^T p, which is the projection of q, that is positive: orthogonal.
    CHECK(std::abs(inner_product(taken, own) - k * variation(own, hann)) < 1e-4 * inner_product(q, q));
  }
}

TEST_CASE("a weight of 0 leaves positivity and the mask", "[solvers][quick]") {
  const auto q = normal({2, 1, 9, 9}, torch::kFloat32, 1);
  const auto mask = (uniform({2, 1, 9, 9}, torch::kFloat32, 2) < 0.5).to(torch::kFloat32);
  for (const auto by : {TvProximal::By::kernels, TvProximal::By::tensors}) {
    TvProximal map(q, true, mask, by);
    CHECK(same(applied(map, q, {0, 0}, {4, 4}), q.clamp_min(0) * mask));
  }
}

TEST_CASE("an image without differences stays as it is", "[solvers][quick]") {
  const auto q = at::zeros({1, 1, 12, 12}, torch::kFloat64) + 2;
  TvProximal map(q, false, {});
  CHECK(same(applied(map, q, {5}, {20}), q));
}

TEMPLATE_TEST_CASE("the proximal map has the same bits for any number of threads, and goes on from a saved dual",
                   "[solvers][quick]", float, double) {
  const auto q = noisy_images({2, 1, 130, 130}, dtype_of<TestType>(), 3);
  check_threads_and_saved_dual([&] { return TvProximal(q, true, {}); }, q, {0.5, 0.1});
}
