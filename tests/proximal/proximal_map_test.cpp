#include "catch.h"

#include <functional>
#include <memory>
#include <string>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/proximal/norms.h>
#include <mpol_cpp/proximal/nuclear_norm.h>
#include <mpol_cpp/proximal/sets.h>
#include <mpol_cpp/proximal/total_variation.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Named {
  std::string name;
  std::shared_ptr<ProximalMap> map;
  bool is_set = false;
};

TotalVariationOptions variation(Variation kind, double l1 = 0, bool positive = false) {
  TotalVariationOptions options;
  options.weight = 0.4;
  options.variation = kind;
  options.l1_weight = l1;
  if (positive) options.sign = TotalVariationOptions::Sign::nonnegative;
  options.tolerance = 1e-13;
  options.most_passes = 4000;
  return options;
}

const std::vector<std::int64_t> shape = {3, 2, 8, 6};  // 3 problems of 2 channels

std::vector<Named> every_map() {
  const auto weights = uniform({2, 8, 6}, torch::kFloat64, 11);
  const auto center = normal({2, 8, 6}, torch::kFloat64, 12);
  auto differences = std::make_shared<DifferenceNorm>(0.6);
  return {{"L1", std::make_shared<L1Norm>(0.7)},
          {"weighted L1", std::make_shared<L1Norm>(weights)},
          {"L2", std::make_shared<L2Norm>(0.9)},
          {"squared L2", std::make_shared<SquaredL2Norm>(1.7)},
          {"weighted squared L2", std::make_shared<SquaredL2Norm>(weights)},
          {"L2,1", std::make_shared<JointSparsity>(0, 0.8)},
          {"L1 + L2,1", std::make_shared<JointSparsity>(0.3, 0.5)},
          {"nuclear", std::make_shared<NuclearNorm>(0.8)},
          {"differences", differences},
          {"differences across channels", std::make_shared<DifferenceNorm>(0.6, Variation::across_channels)},
          {"anisotropic differences", std::make_shared<DifferenceNorm>(0.6, Variation::anisotropic)},
          {"TV", std::make_shared<TotalVariation>(variation(Variation::isotropic))},
          {"anisotropic TV", std::make_shared<TotalVariation>(variation(Variation::anisotropic))},
          {"TV across channels", std::make_shared<TotalVariation>(variation(Variation::across_channels))},
          {"TV + L1 + positivity", std::make_shared<TotalVariation>(variation(Variation::isotropic, 0.2, true))},
          {"TV + L1", std::make_shared<TotalVariation>(variation(Variation::isotropic, 0.2))},
          {"shifted L1", std::make_shared<ShiftedProximal>(std::make_shared<L1Norm>(0.7), center)},
          {"non-negative", std::make_shared<NonNegative>(), true},
          {"box", std::make_shared<Box>(-0.3, 0.4), true},
          {"L1 ball", std::make_shared<L1Ball>(5), true},
          {"L2 ball", std::make_shared<L2Ball>(2.5), true},
          {"epsilon ball", std::make_shared<L2Ball>(uniform({3}, torch::kFloat64, 13), center), true}};
}

/// Maps compute in the dtype that they are given; what they were made of is of float64.
Tensor applied(ProximalMap& map, const Tensor& q, double step) { return map.apply(q, step); }

}  // namespace

TEMPLATE_TEST_CASE("proximal maps are firmly non-expansive and keep shape and dtype", "[proximal][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  for (const auto& [name, map, is_set] : every_map()) {
    CAPTURE(name);
    const auto a = normal(shape, dtype, 1) * 2, b = normal(shape, dtype, 2) * 2;
    const auto pa = applied(*map, a, 0.8), pb = applied(*map, b, 0.8);
    CHECK(pa.scalar_type() == dtype);
    REQUIRE(pa.sizes() == a.sizes());
    const auto moved = (pa - pb).to(torch::kFloat64);
    const auto inner = problem_sums(moved * (a - b).to(torch::kFloat64)), square = problem_sums(moved.square());
    CHECK((inner - square).min().template item<double>() >= -tolerance<TestType>(1e-5, 1e-3));
  }
}

TEST_CASE("no point is better than the proximal point: subgradients", "[proximal][quick]") {
  for (const auto& [name, map, is_set] : every_map()) {
    CAPTURE(name);
    const auto q = normal(shape, torch::kFloat64, 3) * 1.5;
    const double step = 0.6;
    const auto x = applied(*map, q, step);
    const auto cost = [&, &h = *map](const Tensor& at) { return problem_sums((at - q).square()) / 2 + step * h.value(at); };
    const auto least = cost(x);
    // (q - x)/t is a subgradient at x: h(z) >= h(x) + <q - x, z - x>/t for every z that h allows.
    for (std::uint64_t seed = 20; seed < 26; ++seed) {
      const auto z = applied(*map, normal(shape, torch::kFloat64, seed) * 2, step);
      const auto slack = step * (map->value(z) - map->value(x)) - problem_sums((q - x) * (z - x));
      CHECK(slack.min().item<double>() >= -1e-5);
      for (const double part : {1e-3, 1e-1}) CHECK((cost(x + part * (z - x)) - least).min().item<double>() >= -1e-9);
    }
    // The set's points stay where they are.
    if (is_set) CHECK(relative_error(applied(*map, x, step), x) < 1e-12);
  }
}

TEST_CASE("Moreau: a norm's map takes away the projection on the dual norm's ball", "[proximal][quick]") {
  const auto q = normal(shape, torch::kFloat64, 4) * 2;
  for (const auto& [name, map, is_set] : every_map()) {
    if (!map->dual_norm(q)) continue;
    CAPTURE(name);
    const double step = 0.4;
    const auto x = applied(*map, q, step), dual = (q - x) / step;
    CHECK((*map->dual_norm(dual)).max().item<double>() <= 1 + 1e-12);
    CHECK(relative_error(problem_sums(dual * x), map->value(x)) < 1e-12);  // h(x) = <p, x>: x is in the cone of p
    const auto t = at::full({}, step, torch::kFloat64);
    const auto sum = applied(*map, q, step) + step * conjugate_proximal(*map, q / step, t.reciprocal());
    CHECK(relative_error(sum, q) < 1e-12);
  }
}

TEST_CASE("proximal maps have their closed forms", "[proximal][quick]") {
  const auto one = [](double value) { return at::full({1, 1, 1}, value, torch::kFloat64); };
  CHECK(L1Norm(2).apply(one(3), 0.5).item<double>() == 2);
  CHECK(L1Norm(2).apply(one(-0.5), 0.5).item<double>() == 0);
  CHECK(SquaredL2Norm(2).apply(one(3), 0.5).item<double>() == 1.5);
  CHECK(L2Norm(2).apply(one(-3), 0.5).item<double>() == Approx(-2));
  CHECK(Box(-1, 1).apply(one(3), 1).item<double>() == 1);
  CHECK(L1Ball(1).apply(at::full({1, 2, 2}, 3.0, torch::kFloat64), 1).sum().item<double>() == Approx(1));
  CHECK(L2Ball(1).apply(at::full({1, 2, 2}, 3.0, torch::kFloat64), 1).square().sum().item<double>() == Approx(1));
  // Of rank one: the only singular value is the length.
  const auto spectrum = normal({4, 1, 1}, torch::kFloat64, 5), image = normal({1, 5, 5}, torch::kFloat64, 6);
  const auto product = spectrum * image;
  CHECK(NuclearNorm(1).value(product).item<double>() == Approx(product.norm().item<double>()));
  CHECK(relative_error(NuclearNorm(1).apply(product, 0.5), product * (1 - 0.5 / product.norm())) < 1e-12);
  // Two pixels: total variation moves them towards each other by the weight.
  TotalVariationOptions options;
  options.weight = 0.25;
  options.tolerance = 1e-14;
  const auto pair = at::tensor({3.0, 1.0}, torch::kFloat64).view({1, 1, 2});
  CHECK(relative_error(TotalVariation(options).apply(pair, 1), at::tensor({2.75, 1.25}, torch::kFloat64).view({1, 1, 2})) < 1e-6);
}

TEMPLATE_TEST_CASE("singular values of a large matrix shrink as they do without the last step's vectors", "[proximal]", float,
                   double) {
  const auto dtype = c10::CppTypeToScalarType<TestType>::value;
  const double accuracy = dtype == torch::kFloat64 ? 1e-11 : 1e-6;
  torch::manual_seed(8);
  const auto turned = [](std::int64_t rows, std::int64_t columns) {
    return std::get<0>(at::linalg_qr(torch::randn({rows, columns}, torch::kFloat64)));
  };
  for (const bool is_wide : {true, false}) {
    const std::int64_t n = 96, m = 150;
    const auto left = turned(n, n), right = turned(m, n);
    const auto of = [&](const Tensor& values) {
      const auto matrix = left.mul(values).mm(right.mT());
      return (is_wide ? matrix : matrix.mT()).to(dtype).contiguous().unsqueeze(-2);
    };
    auto values = torch::rand({n}, torch::kFloat64) * 0.9;
    values.narrow(0, 0, 6).copy_(torch::tensor({40.0, 20.0, 9.0, 4.0, 1.05, 1.0001}, torch::kFloat64));
    NuclearNorm warm;
    const auto is_right = [&](const Tensor& matrix, double step) {
      CHECK(relative_error(warm.apply(matrix, step), NuclearNorm().apply(matrix, step)) < accuracy);
    };
    is_right(of(values), 1);
    REQUIRE(warm.state().count("block") == 1);
    CHECK(warm.state().at("block").size(1) == 14);
    for (int i = 0; i < 4; ++i) {  // what changes a little
      values.mul_(1 + 0.02 * torch::randn({n}, torch::kFloat64));
      is_right(of(values) + 1e-3 * torch::randn_like(of(values)), 1);
    }
    is_right(of(values), 3);    // fewer remain
    is_right(of(values), 0.9);  // and more
    // The state goes on like the map itself, bit for bit.
    NuclearNorm resumed;
    resumed.load_state(warm.state());
    const auto next = of(values * 1.01);
    CHECK(resumed.apply(next, 1).equal(warm.apply(next, 1)));
    // A large one that the last block knows nothing of, with vectors at right angles to its.
    values[90] = 30;
    is_right(of(values), 1);
    is_right(of(values), 1);
    is_right(of(values), 50);   // nothing remains
    is_right(of(values), 0.3);  // most do
    is_right(of(values), 1);
    CHECK(warm.apply(of(values) * 0, 1).abs().max().template item<double>() == 0);
  }
}

TEST_CASE("each problem has its own step, and is what it is alone", "[proximal][quick]") {
  const auto q = normal(shape, torch::kFloat64, 7);
  const std::vector<double> steps = {0.1, 0.5, 2};
  for (const auto& [name, map, is_set] : every_map()) {
    if (name == "epsilon ball" || name.find("TV") != std::string::npos) continue;  // radii of each problem; a common end
    CAPTURE(name);
    const auto together = map->apply(q, as_factor(steps, q));
    const auto values = map->value(q);
    for (std::int64_t i = 0; i < 3; ++i) {
      CHECK(relative_error(together[i], map->apply(q[i], steps[static_cast<std::size_t>(i)])) < 1e-14);
      CHECK(values[i].item<double>() == Approx(map->value(q[i]).item<double>()).epsilon(1e-13));
    }
  }
}

TEST_CASE("total variation begins with the dual image of the last call", "[proximal][quick]") {
  auto options = variation(Variation::isotropic);
  options.tolerance = 1e-6;
  TotalVariation map(options);
  const auto q = normal({2, 2, 16, 16}, torch::kFloat64, 8) * 2;
  map.apply(q, 1);
  const auto first = map.passes();
  const auto state = map.state();
  const auto again = map.apply(q + 1e-4, 1);
  CHECK(map.passes() < first);
  TotalVariation other(options);
  other.load_state(state);
  CHECK(same(other.apply(q + 1e-4, 1), again));
}

TEST_CASE("a denoiser of one's own is a proximal map", "[proximal][quick]") {
  const auto q = normal(shape, torch::kFloat32, 9);
  UserProximal half([](const Tensor& image, const Tensor& step) { return image / (1 + step); });
  CHECK(relative_error(half.apply(q, 1), q / 2) < 1e-7);
  CHECK(half.value(q).abs().max().item<double>() == 0);
  UserProximal wrong([](const Tensor& image, const Tensor&) { return image.sum(); });
  CHECK_THROWS_AS(wrong.apply(q, 1), ShapeError);
}

TEST_CASE("proximal maps refuse what they cannot be made of", "[proximal][quick]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(L1Norm(-1), ValueError);
  CHECK_THROWS_AS(L1Norm(nan), ValueError);
  CHECK_THROWS_AS(L1Norm(at::full({3}, -1.0)), ValueError);
  CHECK_THROWS_AS(JointSparsity(1, 1, 0), ValueError);
  CHECK_THROWS_AS(Box(1, 0), ValueError);
  CHECK_THROWS_AS(L1Ball(0), ValueError);
  CHECK_THROWS_AS(L2Ball(-1), ValueError);
  TotalVariationOptions options;
  options.most_passes = 0;
  CHECK_THROWS_AS(TotalVariation(options), ValueError);
  CHECK_THROWS_AS(StackedProximal({std::make_shared<L1Norm>()}, {}), ValueError);
  CHECK_THROWS_AS(L1Norm().value(at::full({3, 3}, 1.0)), ShapeError);
}
