#include "catch.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/solvers/pogm.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// F(x) = sum d (x - b)^2 / 2 + lambda sum x, x >= 0, whose minimum is max(b - lambda/d, 0).
class Diagonal : public CompositeFunction {
 public:
  Diagonal(Tensor d, Tensor b, double lambda) : d_(std::move(d)), b_(std::move(b)), lambda_(lambda) {}

  std::vector<double> curvatures() override {
    const auto largest = d_.amax({-2, -1}).flatten().to(torch::kFloat64) * believed;
    return {largest.const_data_ptr<double>(), largest.const_data_ptr<double>() + largest.numel()};
  }
  std::vector<double> evaluate(const Tensor& images, Tensor& gradient) override {
    ++evaluations;
    gradient.copy_(d_ * (images - b_));
    const auto sums = (lambda_ * images.to(torch::kFloat64)).sum({1, 2, 3});
    return {sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + sums.numel()};
  }
  void proximal(const Tensor& q, const std::vector<double>& steps, const std::vector<std::int64_t>&, Tensor& x) override {
    const auto step = at::tensor(steps, torch::kFloat64).view({q.size(0), q.size(1), 1, 1}).to(q.scalar_type());
    x.copy_((q - lambda_ * step).clamp_min(0));
  }
  Tensor minimum() const { return (b_ - lambda_ / d_).clamp_min(0); }
  Diagonal problem(std::int64_t i) const { return {d_.narrow(0, i, 1), b_.narrow(0, i, 1), lambda_}; }

  double believed = 1;  // what curvatures() says, of the true ones
  int evaluations = 0;

 private:
  Tensor d_, b_;
  double lambda_;
};

Diagonal diagonal(torch::Dtype dtype, double condition) {
  const std::vector<std::int64_t> shape = {3, 2, 8, 8};
  const auto d = (uniform(shape, torch::kFloat64, 1) * std::log(condition)).exp().to(dtype);
  return {d, normal(shape, torch::kFloat64, 2).to(dtype), 0.5};
}

Tensor start_of(torch::Dtype dtype) { return uniform({3, 2, 8, 8}, dtype, 3); }

}  // namespace

TEMPLATE_TEST_CASE("POGM ends at the minimum, one evaluation an iteration", "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  auto function = diagonal(dtype, 100);
  Pogm pogm(function, start_of(dtype));
  for (int k = 0; k < 600; ++k) pogm.iterate();
  CHECK(function.evaluations == 601);
  CHECK(relative_error(pogm.images(), function.minimum()) < tolerance<TestType>(1e-9, 1e-4));
}

TEST_CASE("with the momentum of FISTA the images are FISTA's", "[solvers][quick]") {
  auto function = diagonal(torch::kFloat64, 100);
  const auto curvatures = function.curvatures();
  Pogm solver(function, start_of(torch::kFloat64), {.momentum = Momentum::fista});
  auto x = start_of(torch::kFloat64), previous = x, gradient = at::empty_like(x), next = at::empty_like(x);
  const auto step = 1 / at::tensor(curvatures, torch::kFloat64);
  const std::vector<double> steps(step.const_data_ptr<double>(), step.const_data_ptr<double>() + step.numel());
  double t = 1, before = 1;
  for (int k = 0; k < 12; ++k) {  // the textbook's: the gradient at the extrapolated point
    const auto point = x + (before - 1) / t * (x - previous);
    function.evaluate(point, gradient);
    function.proximal(point - step.view({3, 2, 1, 1}) * gradient, steps, {}, next);
    previous = std::exchange(x, next.clone());
    before = std::exchange(t, (1 + std::sqrt(1 + 4 * t * t)) / 2);
    const auto moved = solver.iterate();
    REQUIRE(std::all_of(moved.begin(), moved.end(), [](bool is) { return is; }));
    CHECK(relative_error(solver.images(), x) < 1e-13);
  }
  CHECK_THROWS_WITH(Pogm(function, start_of(torch::kFloat64)).load_state(solver.state()), ContainsSubstring("is of fista"));
}

TEMPLATE_TEST_CASE("FISTA ends at the minimum, and goes on from a saved state bit for bit", "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  auto function = diagonal(dtype, 100);
  const PogmOptions options{.momentum = Momentum::fista};
  Pogm whole(function, start_of(dtype), options), first(function, start_of(dtype), options);
  for (int k = 0; k < 900; ++k) whole.iterate();
  CHECK(relative_error(whole.images(), function.minimum()) < tolerance<TestType>(1e-9, 1e-4));
  for (int k = 0; k < 450; ++k) first.iterate();
  Pogm second(function, first.images().clone(), options);
  second.load_state(first.state());
  for (int k = 0; k < 450; ++k) second.iterate();
  CHECK(at::equal(second.images(), whole.images()));
}

TEST_CASE("POGM needs about as many iterations as the square root of the condition, not the condition", "[solvers][quick]") {
  auto function = diagonal(torch::kFloat64, 1e4);
  Pogm pogm(function, start_of(torch::kFloat64));
  int iterations = 0;
  while (relative_error(pogm.images(), function.minimum()) > 1e-3 && iterations < 5000) pogm.iterate(), ++iterations;
  CHECK(iterations < 600);
}

TEST_CASE("a curvature believed too small is raised where a step shows it", "[solvers][quick]") {
  auto function = diagonal(torch::kFloat64, 100);
  function.believed = 0.05;
  Pogm pogm(function, start_of(torch::kFloat64));
  for (int k = 0; k < 600; ++k) pogm.iterate();
  CHECK(relative_error(pogm.images(), function.minimum()) < 1e-8);
}

TEST_CASE("the problems of a batch are minimized as each alone, bit for bit", "[solvers][quick]") {
  const auto function = diagonal(torch::kFloat64, 1e4);
  auto all = function;
  const auto start = start_of(torch::kFloat64);
  Pogm together(all, start.clone());
  for (int k = 0; k < 200; ++k) together.iterate();
  for (std::int64_t i = 0; i < 3; ++i) {
    auto own = function.problem(i);
    Pogm alone(own, start.narrow(0, i, 1).clone());
    for (int k = 0; k < 200; ++k) alone.iterate();
    CHECK(same(alone.images()[0], together.images()[i]));
  }
}

TEMPLATE_TEST_CASE("POGM goes on from a saved state bit for bit", "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  auto function = diagonal(dtype, 1e4);
  Pogm whole(function, start_of(dtype));
  for (int k = 0; k < 120; ++k) whole.iterate();
  for (const int before : {0, 1, 50}) {
    Pogm first(function, start_of(dtype));
    for (int k = 0; k < before; ++k) first.iterate();
    const auto state = first.state();
    Pogm second(function, first.images().clone());
    second.load_state(state);
    CHECK(second.iterations() == before);
    for (int k = before; k < 120; ++k) second.iterate();
    CHECK(same(second.images(), whole.images()));
    CHECK(second.has_converged(1e-3, {1, 1, 1}) == whole.has_converged(1e-3, {1, 1, 1}));
  }
}

TEST_CASE("a state of other images is refused by name", "[solvers][quick]") {
  auto function = diagonal(torch::kFloat64, 10);
  Pogm pogm(function, start_of(torch::kFloat64));
  pogm.iterate();
  for (const auto* name : {"problems", "curvatures", "decreases", "w", "z", "gradient"}) {
    auto state = pogm.state();
    state[name] = at::zeros({7}, torch::kFloat32);
    CHECK_THROWS_WITH(pogm.load_state(state), ContainsSubstring(std::string("has no ") + name));
  }
}

TEST_CASE("POGM has converged when the function falls no more, and not before 64 iterations", "[solvers][quick]") {
  auto function = diagonal(torch::kFloat64, 10);
  Pogm pogm(function, function.minimum());
  for (int k = 0; k < 63; ++k) pogm.iterate();
  CHECK_FALSE(pogm.has_converged(1e-3, {1, 1, 1}));
  pogm.iterate();
  CHECK(pogm.has_converged(1e-3, {1, 1, 1}));
  Pogm far(function, start_of(torch::kFloat64) * 1e3);
  for (int k = 0; k < 64; ++k) far.iterate();
  CHECK_FALSE(far.has_converged(1e-30, {1, 1, 1}));
}
