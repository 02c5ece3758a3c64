#include "catch.h"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/proximal/norms.h>
#include <mpol_cpp/proximal/sets.h>
#include <mpol_cpp/proximal/total_variation.h>
#include <mpol_cpp/proximal/wavelet_dictionary.h>
#include <mpol_cpp/solvers/admm.h>
#include <mpol_cpp/solvers/ball_constrained.h>
#include <mpol_cpp/solvers/conjugate_gradient.h>
#include <mpol_cpp/solvers/fista.h>
#include <mpol_cpp/solvers/primal_dual.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t problems = 3, unknowns = 30, measured = 20;

/// |A x - b|^2 / 2 + weight |x|_1 of three problems with matrices of their own; vectors are (3, 1, n, 1).
struct Lasso {
  explicit Lasso(torch::Dtype dtype)
      : matrix((normal({problems, 1, measured, unknowns}, torch::kFloat64, 1) / 4).to(dtype)),
        data(normal({problems, 1, measured, 1}, torch::kFloat64, 2).to(dtype)),
        start(at::zeros({problems, 1, unknowns, 1}, data.options())),
        map(std::make_shared<LinearFunctions>([m = matrix](const Tensor& x) { return m.matmul(x); },
                                              [m = matrix](const Tensor& y) { return m.transpose(-2, -1).matmul(y); })),
        smooth(std::make_shared<LeastSquares>(map, data)),
        norm(std::make_shared<L1Norm>(weight)) {}
  static constexpr double weight = 0.3;
  Tensor matrix, data, start;
  std::shared_ptr<LinearMap> map;
  std::shared_ptr<LeastSquares> smooth;
  std::shared_ptr<L1Norm> norm;
};

template <typename Options>
Options asked(double tolerance, std::int64_t iterations) {
  Options options;
  options.tolerance = tolerance;
  options.most_iterations = iterations;
  return options;
}

std::unique_ptr<IterativeSolver> lasso_solver(const std::string& name, const Lasso& lasso, double tolerance,
                                              std::int64_t iterations) {
  if (name == "admm") {
    auto options = asked<AdmmOptions>(tolerance, iterations);
    return std::make_unique<Admm>(std::make_shared<LeastSquaresModel>(lasso.map, lasso.data, LeastSquaresModel::Solve{1e-12, 60}),
                                  lasso.norm, lasso.start, options);
  }
  if (name == "primal-dual") {
    return std::make_unique<PrimalDual>(lasso.smooth, std::make_shared<NoProximal>(), std::make_shared<IdentityMap>(), lasso.norm,
                                        lasso.start, asked<PrimalDualOptions>(tolerance, iterations));
  }
  if (name == "chambolle-pock") {
    auto fit = std::make_shared<ShiftedProximal>(std::make_shared<SquaredL2Norm>(), lasso.data);
    return std::make_unique<PrimalDual>(nullptr, lasso.norm, lasso.map, fit, lasso.start,
                                        asked<PrimalDualOptions>(tolerance, iterations));
  }
  if (name == "linearized admm") {
    auto fit = std::make_shared<ShiftedProximal>(std::make_shared<SquaredL2Norm>(), lasso.data);
    const double norm = squared_norm(*lasso.map, lasso.start).max().item<double>();
    auto options = asked<AdmmOptions>(tolerance, iterations);
    options.relaxation = 1;
    return std::make_unique<Admm>(std::make_shared<LinearizedModel>(lasso.norm, lasso.map, norm), fit,
                                  lasso.map->apply(lasso.start), options, lasso.start);
  }
  auto options = asked<FistaOptions>(tolerance, iterations);
  if (name == "fista, plain") options.variant = FistaOptions::Variant::plain;
  if (name == "fista, monotone") options.variant = FistaOptions::Variant::monotone;
  if (name == "fista, backtracking") {
    options.backtracking = FistaOptions::Backtracking::on;
    options.curvatures = {0.1};
  }
  return std::make_unique<Fista>(lasso.smooth, lasso.norm, lasso.start, options);
}

const std::vector<std::string> lasso_solvers = {"fista", "fista, plain", "fista, monotone", "fista, backtracking",
                                                "admm",  "primal-dual",  "chambolle-pock",  "linearized admm"};

std::vector<double> lasso_values(const Lasso& lasso, const Tensor& x) {
  return on_host(lasso.smooth->value(x) + lasso.norm->value(x));
}

std::string refusal(const std::function<void()>& make) {
  try {
    make();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("every solver ends at the same point, where Karush's, Kuhn's and Tucker's conditions hold", "[solvers]") {
  const Lasso lasso(torch::kFloat64);
  Tensor first;
  for (const auto& name : lasso_solvers) {
    CAPTURE(name);
    const auto solver = lasso_solver(name, lasso, 1e-9, 20000);
    const auto report = solver->solve();
    const auto x = solver->solution();
    CHECK(report.converged);
    CHECK(report.iterations < 20000);
    CHECK(report.pairs >= report.iterations);
    CHECK(report.seconds.at("total") > 0);
    // 0 in A*(A x - b) + weight sign(x), where signs of 0 are all of [-1, 1].
    const auto slope = lasso.map->adjoint(lasso.data - lasso.map->apply(x)) / Lasso::weight;
    CHECK(slope.abs().max().item<double>() < 1 + 1e-6);
    CHECK(((slope - x.sign()) * (x.abs() > 1e-7)).abs().max().item<double>() < 1e-6);
    if (!first.defined()) first = x;
    CHECK(relative_error(x, first) < 1e-6);
    const auto values = lasso_values(lasso, x);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(report.objective[i] == Approx(values[i]).epsilon(1e-6));
  }
}

TEST_CASE("a problem goes where it goes alone", "[solvers][quick]") {
  const Lasso lasso(torch::kFloat64);
  const auto together = lasso_solver("fista", lasso, 0, 40);
  together->solve();
  for (std::int64_t i = 0; i < problems; ++i) {
    Lasso alone(torch::kFloat64);
    alone.matrix = lasso.matrix.narrow(0, i, 1);
    const LinearFunctions map([&](const Tensor& x) { return alone.matrix.matmul(x); },
                              [&](const Tensor& y) { return alone.matrix.transpose(-2, -1).matmul(y); });
    auto options = asked<FistaOptions>(0, 40);
    options.curvatures = {dynamic_cast<Fista&>(*together).curvatures()[static_cast<std::size_t>(i)]};
    Fista solver(std::make_shared<LeastSquares>(std::make_shared<LinearFunctions>(map), lasso.data.narrow(0, i, 1)), alone.norm,
                 lasso.start.narrow(0, i, 1), options);
    solver.solve();
    CHECK(relative_error(solver.solution(), together->solution().narrow(0, i, 1)) < 1e-12);
  }
}

TEMPLATE_TEST_CASE("a solver goes on from its state bit for bit", "[solvers][quick]", float, double) {
  const Lasso lasso(dtype_of<TestType>());
  for (const auto& name : lasso_solvers) {
    CAPTURE(name);
    const auto whole = lasso_solver(name, lasso, 0, 50), half = lasso_solver(name, lasso, 0, 23),
               rest = lasso_solver(name, lasso, 0, 50);
    const auto report = whole->solve();
    half->solve();
    rest->load_state(half->state());
    const auto resumed = rest->solve();
    CHECK(resumed.iterations == 50);
    CHECK(resumed.pairs == report.pairs);
    CHECK(resumed.objective == report.objective);
    CHECK(same(rest->solution(), whole->solution()));
    CHECK_THROWS_AS(rest->load_state({}), FileError);
    auto damaged = whole->state();
    damaged["x"] = at::zeros({2, 2});
    CHECK_THROWS_AS(rest->load_state(damaged), FileError);
  }
}

TEMPLATE_TEST_CASE("total variation: one optimum by its map, by ADMM, by its linearized form and by primal-dual steps",
                   "[solvers][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto data = normal({2, 1, 12, 12}, dtype, 5);
  const auto differences = std::make_shared<ImageDifferences>();
  const auto norm = std::make_shared<DifferenceNorm>(0.4);
  const auto fit = std::make_shared<ShiftedProximal>(std::make_shared<SquaredL2Norm>(), data);
  TotalVariationOptions variation;
  variation.weight = 0.4;
  variation.tolerance = 1e-13;
  variation.most_passes = 3000;
  const auto wanted = TotalVariation(variation).apply(data, 1);
  const double bound = tolerance<TestType>(1e-5, 1e-3), end = tolerance<TestType>(1e-9, 1e-6);
  const auto start = at::zeros_like(data), split = differences->apply(start);

  const auto identity = std::make_shared<IdentityMap>();
  Admm admm(std::make_shared<LeastSquaresModel>(identity, data, LeastSquaresModel::Solve{1e-12, 60}, Tensor(), differences), norm,
            split, asked<AdmmOptions>(end, 3000), start);
  admm.solve();
  CHECK(relative_error(admm.solution(), wanted) < bound);
  Admm linearized(std::make_shared<LinearizedModel>(fit, differences, 8), norm, split, asked<AdmmOptions>(end, 5000), start);
  linearized.solve();
  CHECK(relative_error(linearized.solution(), wanted) < bound);
  PrimalDual primal_dual(nullptr, fit, differences, norm, start, asked<PrimalDualOptions>(end, 5000));
  primal_dual.solve();
  CHECK(relative_error(primal_dual.solution(), wanted) < bound);
  auto relaxed = asked<PrimalDualOptions>(end, 5000);
  relaxed.relaxation = 1.4;
  PrimalDual condat(std::make_shared<LeastSquares>(identity, data), std::make_shared<NoProximal>(), differences, norm, start,
                    relaxed);
  condat.solve();
  CHECK(relative_error(condat.solution(), wanted) < bound);
}

TEST_CASE("the least of a diagonal problem is its closed form", "[solvers][quick]") {
  const auto data = normal({2, 3, 5, 5}, torch::kFloat64, 6), weights = uniform({2, 3, 5, 5}, torch::kFloat64, 7) + 0.5;
  const auto smooth = std::make_shared<LeastSquares>(std::make_shared<IdentityMap>(), data, weights);
  Fista fista(smooth, std::make_shared<L1Norm>(0.4), at::zeros_like(data), asked<FistaOptions>(1e-12, 2000));
  const auto report = fista.solve();
  CHECK(relative_error(fista.solution(), (data.abs() - 0.4 / weights).clamp_min(0) * data.sign()) < 1e-10);
  REQUIRE(report.gap);
  for (const double gap : *report.gap) CHECK_THAT(gap, WithinAbs(0, 1e-9));
}

TEST_CASE("the gap is above what is left, and closes", "[solvers][quick]") {
  const Lasso lasso(torch::kFloat64);
  const auto least = lasso_solver("fista", lasso, 1e-12, 5000)->solve().objective;
  double last = std::numeric_limits<double>::infinity();
  for (const std::int64_t iterations : {2, 20, 200, 800}) {
    const auto report = lasso_solver("fista", lasso, 0, iterations)->solve();
    REQUIRE(report.gap);
    double largest = 0;
    for (std::size_t i = 0; i < least.size(); ++i) {
      CHECK((*report.gap)[i] >= report.objective[i] - least[i] - 1e-11);
      largest = std::max(largest, (*report.gap)[i]);
    }
    CHECK(largest < last);
    last = largest;
  }
  CHECK(last < 1e-9);
  CHECK_FALSE(lasso_solver("admm", lasso, 0, 2)->solve().gap);
}

TEST_CASE("the monotone and the restarted variant never let the objective rise", "[solvers][quick]") {
  const Lasso lasso(torch::kFloat64);
  for (const auto variant : {FistaOptions::Variant::monotone, FistaOptions::Variant::restart}) {
    auto options = asked<FistaOptions>(0, 300);
    options.variant = variant;
    std::vector<double> last(problems, std::numeric_limits<double>::infinity());
    options.callback = [&](const IterationRecord& record) {
      for (std::size_t i = 0; i < last.size(); ++i) CHECK(record.objective[i] <= last[i] * (1 + 1e-14));
      last = record.objective;
      return Proceed::go_on;
    };
    Fista(lasso.smooth, lasso.norm, lasso.start, options).solve();
  }
}

TEMPLATE_TEST_CASE("conjugate gradients solve each problem", "[solvers][quick]", float, double) {
  const Lasso lasso(dtype_of<TestType>());
  const auto right = lasso.map->adjoint(lasso.data);
  const auto symmetric = [&](const Tensor& x) { return lasso.map->adjoint(lasso.map->apply(x)) + 0.5 * x; };
  auto options = asked<ConjugateGradientOptions>(tolerance<TestType>(1e-12, 1e-5), 100);
  ConjugateGradient solver(symmetric, right, lasso.start, options);
  const auto report = solver.solve();
  CHECK(report.converged);
  CHECK(report.iterations <= unknowns + 2);
  const auto matrix =
      lasso.matrix.transpose(-2, -1).matmul(lasso.matrix).to(torch::kFloat64) + 0.5 * at::eye(unknowns, torch::kFloat64);
  const auto wanted = at::linalg_solve(matrix, right.to(torch::kFloat64));
  CHECK(relative_error(solver.solution(), wanted) < tolerance<TestType>(1e-10, 1e-4));
  CHECK(report.objective[0] == Approx(-(wanted * right)[0].sum().template item<double>() / 2).epsilon(1e-4));
  options.most_iterations = 4;
  ConjugateGradient half(symmetric, right, lasso.start, options),
      rest(symmetric, right, lasso.start, asked<ConjugateGradientOptions>(0, 12));
  ConjugateGradient whole(symmetric, right, lasso.start, asked<ConjugateGradientOptions>(0, 12));
  half.solve();
  rest.load_state(half.state());
  rest.solve();
  whole.solve();
  CHECK(same(rest.solution(), whole.solution()));
}

TEST_CASE("a fit within a ball is as simple as the noise allows", "[solvers][quick]") {
  auto truth = at::zeros({2, 1, 16, 16}, torch::kFloat64);
  truth.narrow(-1, 4, 6).narrow(-2, 5, 7).fill_(10);
  const auto data = truth + normal(truth.sizes(), torch::kFloat64, 8);
  BallConstrained problem;
  problem.measurement = std::make_shared<IdentityMap>();
  problem.data = data;
  problem.radii = at::full({2}, noise_radius(256), torch::kFloat64);
  problem.analysis = std::make_shared<SaraDictionary>(SaraOptions{2, 1});
  problem.simplicity = std::make_shared<L1Norm>();
  problem.allowed = std::make_shared<NonNegative>();
  const auto solver = ball_constrained(problem, at::zeros_like(data), asked<PrimalDualOptions>(1e-4, 3000));
  const auto report = solver->solve();
  const auto x = solver->solution();
  CHECK(report.converged);
  CHECK(x.min().item<double>() >= 0);
  const auto radius = noise_radius(256);
  for (const double distance : on_host(problem_norms(x - data))) CHECK(distance == Approx(radius).epsilon(3e-3));
  // Of all that are allowed none is simpler: the truth is allowed, as likely as not, and so is what lies in between.
  const auto simplicity = [&](const Tensor& at) { return problem.simplicity->value(problem.analysis->apply(at)); };
  const auto inside = L2Ball(problem.radii, data).apply(truth, 1).clamp_min(0);
  const auto closer = data + (inside - data) * as_factor((radius / problem_norms(inside - data)).clamp_max(1), data);
  CHECK((simplicity(closer) - simplicity(x)).min().item<double>() > -0.5);
  CHECK((problem_norms(x - truth) < problem_norms(data - truth)).all().item<bool>());
  problem.simplicity = nullptr;
  CHECK_THROWS_AS(ball_constrained(problem, data), ValueError);
  CHECK_THROWS_AS(noise_radius(0), ValueError);
}

TEST_CASE("solvers tell of their iterations and stop when they are told", "[solvers][quick]") {
  const Lasso lasso(torch::kFloat64);
  std::vector<std::string> lines;
  auto options = asked<AdmmOptions>(1e-6, 7);
  const auto table = iteration_table([&](std::string_view line) { lines.emplace_back(line); });
  options.callback = [&](const IterationRecord& record) {
    table(record);
    CHECK(record.objective.size() == problems);
    return record.iteration == 5 ? Proceed::stop : Proceed::go_on;
  };
  Admm admm(std::make_shared<LeastSquaresModel>(lasso.map, lasso.data, LeastSquaresModel::Solve{}), lasso.norm, lasso.start,
            options);
  const auto report = admm.solve();
  CHECK(report.iterations == 5);
  CHECK_FALSE(report.converged);
  REQUIRE(lines.size() == 6);
  CHECK_THAT(lines[0], ContainsSubstring("objective"));
  CHECK_THAT(lines[5], StartsWith("     5"));
}

TEST_CASE("solvers refuse options out of range and say which", "[solvers][quick]") {
  const Lasso lasso(torch::kFloat64);
  const auto admm = [&](const std::function<void(AdmmOptions&)>& change) {
    AdmmOptions options;
    change(options);
    return refusal([&] {
      Admm(std::make_shared<LeastSquaresModel>(lasso.map, lasso.data, LeastSquaresModel::Solve{}), lasso.norm, lasso.start,
           options);
    });
  };
  CHECK(admm([](auto&) {}) == "no error");
  CHECK_THAT(admm([](auto& o) { o.rho = 0; }), ContainsSubstring("rho is 0"));
  CHECK_THAT(admm([](auto& o) { o.relaxation = 2; }), ContainsSubstring("relaxation is 2"));
  CHECK_THAT(admm([](auto& o) { o.balance.period = 0; }), ContainsSubstring("period"));
  CHECK_THAT(admm([](auto& o) { o.balance.ratio = 1; }), ContainsSubstring("ratio"));
  CHECK_THAT(admm([](auto& o) { o.balance.target = -1; }), ContainsSubstring("target"));
  CHECK_THAT(admm([](auto& o) { o.balance.largest_factor = 1; }), ContainsSubstring("largest factor"));
  CHECK_THAT(admm([](auto& o) { o.absolute_tolerance = -1; }), ContainsSubstring("absolute tolerance"));
  CHECK_THAT(admm([](auto& o) { o.tolerance = -1; }), ContainsSubstring("tolerance is -1"));
  CHECK_THAT(admm([](auto& o) { o.most_iterations = 0; }), ContainsSubstring("most_iterations"));
  CHECK_THAT(admm([](auto& o) { o.problem_dims = 2; }), ContainsSubstring("dimensions"));
  const auto fista = [&](const std::function<void(FistaOptions&)>& change) {
    FistaOptions options;
    change(options);
    return refusal([&] { Fista(lasso.smooth, lasso.norm, lasso.start, options); });
  };
  CHECK(fista([](auto&) {}) == "no error");
  CHECK_THAT(fista([](auto& o) { o.curvatures = {0}; }), ContainsSubstring("curvature is 0"));
  CHECK_THAT(fista([](auto& o) { o.curvatures = {1, 2}; }), ContainsSubstring("2 curvatures for 3 problems"));
  CHECK_THAT(fista([](auto& o) { o.backtracking_factor = 1; }), ContainsSubstring("factor of 1"));
  CHECK_THAT(fista([](auto& o) { o.problem_dims = 4; }), ContainsSubstring("dimensions"));
  const auto primal_dual = [&](const std::function<void(PrimalDualOptions&)>& change) {
    PrimalDualOptions options;
    change(options);
    return refusal([&] {
      PrimalDual(lasso.smooth, std::make_shared<NoProximal>(), std::make_shared<IdentityMap>(), lasso.norm, lasso.start, options);
    });
  };
  CHECK(primal_dual([](auto&) {}) == "no error");
  CHECK_THAT(primal_dual([](auto& o) { o.relaxation = 1.6; }), ContainsSubstring("relaxation is 1.6"));
  CHECK_THAT(primal_dual([](auto& o) { o.dual_steps = {-1}; }), ContainsSubstring("dual steps"));
  CHECK_THAT(primal_dual([](auto& o) { o.squared_norms = {1, 1}; }), ContainsSubstring("2 squared norms"));
  CHECK_THAT(refusal([&] { LinearizedModel(lasso.norm, lasso.map, 0); }), ContainsSubstring("squared norm"));
  CHECK_THAT(refusal([&] { LeastSquares(lasso.map, lasso.data, at::full({1}, -1.0)); }), ContainsSubstring("weight"));
}

TEST_CASE("values that are not finite end a solver with what happened", "[solvers][quick]") {
  const Lasso lasso(torch::kFloat64);
  const auto broken = std::make_shared<LeastSquares>(lasso.map, lasso.data / 0);
  FistaOptions options;
  options.curvatures = {1};
  CHECK_THROWS_AS(Fista(broken, lasso.norm, lasso.start, options).solve(), DivergedError);
}
