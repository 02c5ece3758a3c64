#include "catch.h"

#include <torch/optim/adam.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/steps/fused_loss.h>

#include "compare.h"
#include "problems.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

std::vector<Term> more_terms() {
  return {terms::tsv(3e-3), terms::entropy(1e-3), terms::psd(1e-16, 0.05), terms::group_sparsity(2e-3)};
}

/// Total and gradient by autograd.
std::pair<Tensor, Tensor> by_autograd(GriddedNet model, const Objective& objective) {
  model->zero_grad();
  const auto total = objective.evaluate(model).total;
  total.sum().backward();
  return {total.detach(), model->base().grad().clone()};
}

}  // namespace

TEMPLATE_TEST_CASE("the fused loss and its gradient are those of the objective by autograd", "[train][quick]", float, double) {
  constexpr auto dtype = c10::CppTypeToScalarType<TestType>::value;
  const double limit = dtype == torch::kFloat64 ? 1e-12 : 2e-5;
  const auto likelihood = GENERATE(as<std::string>(), "gridded", "exact", "loose");
  const auto problems = GENERATE(as<std::vector<std::int64_t>>(), std::vector<std::int64_t>{}, std::vector<std::int64_t>{2, 3});
  const SmallProblem problem{.dtype = dtype, .likelihood = likelihood};
  auto model = problem.model(problems);
  const auto objective = problem.objective(more_terms());
  const auto [total, gradient] = by_autograd(model, objective);

  FusedLoss loss(model, objective);
  const auto base = model->base().detach().clone().requires_grad_();
  const auto fused = loss(base);
  CHECK(fused.sizes() == torch::IntArrayRef(problems));
  CHECK(fused.scalar_type() == torch::kFloat64);
  CHECK(relative_error(fused, total) < limit);
  fused.sum().backward();
  CHECK(relative_error(base.grad(), gradient) < limit * 10);
  CHECK(relative_error(loss.losses(), objective.evaluate(model).table()) < limit);

  SECTION("the gradient follows the weight of each problem in what is made of the losses") {
    base.mutable_grad().reset();
    const auto factors = uniform(problems, torch::kFloat64, 5);
    (loss(base) * factors).sum().backward();
    CHECK(relative_error(base.grad(), gradient * factors.to(dtype).unsqueeze(-1).unsqueeze(-1).unsqueeze(-1)) < limit * 10);
  }
}

TEST_CASE("an optimizer of LibTorch on the fused loss goes where it goes on the objective", "[train][quick]") {
  const SmallProblem problem;
  auto eager = problem.model(), fused = problem.model();
  const auto objective = problem.objective();
  FusedLoss loss(fused, objective);
  torch::optim::Adam first(eager->parameters(), 0.1), second(fused->parameters(), 0.1);
  for (int epoch = 0; epoch < 20; ++epoch) {
    first.zero_grad();
    objective.evaluate(eager).total.backward();
    first.step();
    second.zero_grad();
    loss(fused->base()).backward();
    second.step();
  }
  CHECK(relative_error(fused->base().detach(), eager->base().detach()) < 1e-10);
  CHECK(relative_error(fused->base().detach(), problem.model()->base().detach()) > 1e-2);
}

TEST_CASE("the fused loss refuses what it cannot do", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  FusedLoss loss(model, problem.objective());
  auto base = model->base().detach().clone().requires_grad_();
  CHECK_THROWS_WITH(loss.losses(), ContainsSubstring("has not been called"));
  CHECK_THROWS_AS(loss(base.to(torch::kFloat32)), ShapeError);
  CHECK_THROWS_AS(loss(base.narrow(-1, 0, 10)), ShapeError);
  const auto value = loss(base);
  CHECK_THROWS_WITH(torch::autograd::grad({value}, {base}, {}, true, true), ContainsSubstring("first derivatives alone"));

  auto own_mapping =
      GriddedNet(GriddedNetOptions(problem.coords).nchan(2).pixel_mapping(nonnegative_mapping()).dtype(torch::kFloat64));
  CHECK_THROWS_WITH(FusedLoss(own_mapping, problem.objective()), ContainsSubstring("the pixel mapping is"));
  CHECK(FusedLoss::obstacle(*own_mapping, problem.objective()) != "");
  CHECK(FusedLoss::obstacle(*model, problem.objective()).empty());
}
