#include "catch.h"

#include <limits>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/regularizers/regularizers.h>
#include <mpol_cpp/objective/objective.h>

#include "compare.h"
#include "golden.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct NetForward {
  Golden data{"dataset"}, gridding{"gridding"}, golden{"net_forward"};
  GridCoords coords{data.number("in_cell_size"), data.number<std::int64_t>("in_npix")};

  GriddedNet model(torch::Dtype dtype) const {
    return GriddedNet(GriddedNetOptions(coords).base_cube(packed_to_sky(data("in_base_packed"))).dtype(dtype));
  }
  Objective objective(torch::Dtype dtype, std::vector<Term> terms) const {
    const auto cells = gridding("out_mask_packed").flatten().nonzero().squeeze(1);
    auto likelihood = GriddedLikelihood(GriddedDataset(coords, data.number<std::int64_t>("in_nchan"), cells,
                                                       gridding("out_vis_indexed"), gridding("out_weight_indexed")));
    likelihood->to(dtype);
    return Objective(likelihood, std::move(terms));
  }
  double lambda(const std::string& name) const { return golden.number("in_lambda_" + name); }
};

}  // namespace

TEMPLATE_TEST_CASE("objectives and their gradients equal MPoL's", "[train][quick]", float, double) {
  const NetForward set;
  const auto dtype = dtype_of<TestType>();
  const auto sparsity = terms::sparsity(set.lambda("sparsity"));
  const auto tv = terms::tv_image(set.lambda("tv"));
  const auto tsv = terms::tsv(set.lambda("tsv"));
  const auto entropy =
      terms::entropy(set.lambda("entropy"), set.golden.number("in_prior_intensity"), set.golden.number("in_tot_flux"));
  const std::vector<std::pair<std::string, std::vector<Term>>> cases = {
      {"nll", {}},    {"sparsity", {sparsity}}, {"tv", {tv}},
      {"tsv", {tsv}}, {"entropy", {entropy}},   {"all", {sparsity, tv, tsv, entropy}}};
  for (const auto& [name, terms] : cases) {
    INFO(name);
    auto model = set.model(dtype);
    const auto value = set.objective(dtype, terms).evaluate(*model);
    CHECK(value.total.scalar_type() == torch::kFloat64);
    CHECK(relative_error(value.total, set.golden("out_loss_" + name)) < tolerance<TestType>(1e-12, 1e-6));
    CHECK(relative_error(value.nll, set.golden("out_loss_nll")) < tolerance<TestType>(1e-12, 1e-6));
    if (!set.golden.has("out_gradient_" + name)) continue;
    value.total.backward();
    CHECK(relative_error(sky_to_packed(model->base().grad()), set.golden("out_gradient_" + name)) <
          tolerance<TestType>(1e-12, 1e-6));
  }
}

TEST_CASE("an objective reports each weighted term, and their sum is the total", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto objective = problem.objective();
  CHECK(objective.columns() == std::vector<std::string>{"total", "nll", "sparsity", "tv", "tv_channel"});
  const auto value = objective.evaluate(*model);
  const auto sky = model->make_sky();
  REQUIRE(value.terms.size() == 3);
  CHECK(value.terms[0].item<double>() == Approx(1e-3 * losses::sparsity(sky).item<double>()).epsilon(1e-14));
  CHECK(value.terms[1].item<double>() == Approx(2e-3 * losses::tv_image(sky).item<double>()).epsilon(1e-14));
  CHECK(value.terms[2].item<double>() == Approx(1e-3 * losses::tv_channel(sky).item<double>()).epsilon(1e-14));
  const auto table = value.table();
  CHECK(table.sizes() == at::IntArrayRef({5, 1}));
  CHECK(!table.requires_grad());
  CHECK(table[0][0].item<double>() == Approx(table.slice(0, 1).sum().item<double>()).epsilon(1e-14));
}

TEST_CASE("every known term is its loss function times its weight", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model({3});
  const torch::NoGradGuard no_grad;
  const auto sky = model->make_sky();
  const ModelOutput output(problem.coords, model->base(), sky);
  const auto vis = FourierCube(problem.coords)->forward(sky);
  CHECK(at::equal(terms::tsv(1).evaluate(output), losses::tsv(sky)));
  CHECK(at::equal(terms::entropy(1, 1e-3, 2.0).evaluate(output), losses::entropy(sky, 1e-3, 2.0)));
  CHECK(at::equal(terms::edge_clamp(1).evaluate(output), losses::edge_clamp(sky)));
  CHECK(at::equal(terms::psd(1, 0.05).evaluate(output), losses::psd(vis, problem.coords, 0.05)));
  CHECK(at::equal(terms::uv_sparsity(1, 1e6).evaluate(output), losses::uv_sparsity(vis, problem.coords, 1e6)));
  CHECK(output.visibilities().data_ptr() == output.visibilities().data_ptr());
  CHECK(terms::entropy(1, 1e-3, 2.0).kind() == TermKind::entropy);
  CHECK(terms::entropy(1, 1e-3, 2.0).settings() == std::vector<double>{1e-3, 2.0});
}

TEST_CASE("an objective of several problems gives each problem's values", "[train][quick]") {
  const SmallProblem problem;
  auto batch = problem.model({4});
  const auto objective = problem.objective();
  const auto together = objective.evaluate(*batch).table();
  REQUIRE(together.sizes() == at::IntArrayRef({5, 4}));
  for (std::int64_t i = 0; i < 4; ++i) {
    auto single = problem.model_of(batch->base().detach()[i]);
    CHECK(relative_error(together.select(1, i), objective.evaluate(*single).table().select(1, 0)) < 1e-13);
  }
}

TEST_CASE("the normalisation divides chi squared by twice its number", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  auto dataset = random_dataset(problem.coords, problem.nchan, 7);
  dataset->set_nvis(12345);
  auto likelihood = GriddedLikelihood(dataset);
  const auto chi_squared = likelihood->chi_squared(model->make_sky()).item<double>();
  const auto nll = [&](Normalize normalize) { return Objective(likelihood, {}, normalize).evaluate(*model).nll.item<double>(); };
  CHECK(nll(Normalize::cells) == Approx(chi_squared / (2.0 * static_cast<double>(dataset->ncells()))).epsilon(1e-14));
  CHECK(nll(Normalize::visibilities) == Approx(chi_squared / (2.0 * 12345)).epsilon(1e-14));
  CHECK(nll(Normalize::none) == Approx(chi_squared).epsilon(1e-14));
}

TEST_CASE("a term of weight 0 is reported as 0 and not computed", "[train][quick]") {
  const SmallProblem problem;
  auto model = problem.model();
  const auto objective = problem.objective({Term("unused", 0.0, [](const ModelOutput&) -> Tensor { throw Error("computed"); })});
  CHECK(objective.evaluate(*model).terms.back().item<double>() == 0.0);
}

TEST_CASE("terms and objectives that cannot be are refused", "[train][quick]") {
  const SmallProblem problem;
  const auto sum = [](const ModelOutput& out) { return out.sky.sum(); };
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(Term("a", -1.0, sum), ValueError);
  CHECK_THROWS_AS(Term("a", nan, sum), ValueError);
  CHECK_THROWS_AS(Term("a", infinity, sum), ValueError);
  CHECK_THROWS_AS(Term("", 1.0, sum), ValueError);
  CHECK_THROWS_AS(Term("a,b", 1.0, sum), ValueError);
  CHECK_THROWS_AS(Term("nll", 1.0, sum), ValueError);
  CHECK_THROWS_AS(Term("a", 1.0, {}), ValueError);
  CHECK_THROWS_AS(terms::entropy(1.0, 0.0), ValueError);
  CHECK_THROWS_AS(terms::psd(1.0, -1.0), ValueError);
  CHECK_THROWS_WITH(problem.objective({terms::sparsity(1)}), ContainsSubstring("sparsity"));
  auto batch = problem.model({2});
  CHECK_THROWS_WITH(problem.objective({Term("mine", 1.0, sum)}).evaluate(*batch),
                    ContainsSubstring("mine") && ContainsSubstring("[2]"));
}
