// Models and likelihoods of the user's own, and what trainers and objectives take.
#include "catch.h"

#include <ATen/ops/softplus.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>
#include <mpol_cpp/models/simple_net.h>
#include <mpol_cpp/train/problem_stops.h>
#include <mpol_cpp/models/model_image.h>
#include <mpol_cpp/train/train_to_dirty.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "problems.h"
#include "warnings.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// The least that a model is: no base(), one function.
class OwnModelImpl : public Module<OwnModelImpl>, public ImageModel {
 public:
  OwnModelImpl(const GridCoords& coords, Tensor start) : ImageModel(coords), start_(std::move(start)) { reset(); }
  void reset() override { pixels_ = register_parameter("pixels", start_.clone()); }
  Tensor make_sky() override { return at::softplus(pixels_); }

 private:
  Tensor start_, pixels_;
};
TORCH_MODULE(OwnModel);

/// The least that a likelihood is: two functions.
class OwnLikelihoodImpl : public Module<OwnLikelihoodImpl>, public Likelihood {
 public:
  OwnLikelihoodImpl(const GridCoords& coords, Tensor image) : Likelihood(coords), image_(std::move(image)) { reset(); }
  void reset() override { image_ = register_buffer("image", image_.variable_data()); }
  Tensor chi_squared(const Tensor& sky) override { return (sky - image_).square().sum({-3, -2, -1}); }
  double normalizer() const override { return static_cast<double>(image_.numel()); }

 private:
  Tensor image_;
};
TORCH_MODULE(OwnLikelihood);

const GridCoords own_grid(0.05, 12);

OwnModel own_model(std::vector<std::int64_t> problems = {}) {
  for (const auto extent : {2, 12, 12}) problems.push_back(extent);
  return OwnModel(own_grid, normal(problems, torch::kFloat64, 3));
}

}  // namespace

TEST_CASE("problems of a model without base pixels are those of its image", "[train][quick]") {
  const SmallProblem problem;
  auto model = own_model({3});
  const auto objective = problem.objective();
  const auto options = TrainOptions().epochs(50).stop_relative(1e-2).stop_scope(StopScope::each).rate_factors({1, 2, 3});
  const auto result = Trainer(model, objective, options).fit();
  CHECK(result.problem_epochs.size() == 3);
  CHECK(result.step == StepKind::eager);
  // As of a model whose base pixels tell.
  auto net = problem.model({3});
  const auto own_terms = TrainOptions(options).step(StepKind::eager);
  const auto expected = Trainer(net, objective, own_terms).fit();
  CHECK(problem_shape(*net) == problem_shape(*model));
  CHECK(expected.problem_epochs.size() == 3);
  CHECK_THROWS_WITH(Trainer(model, objective, TrainOptions().epochs(1).rate_factors({1, 2})).fit(),
                    ContainsSubstring("2 rate_factors, but 3 problems"));
}

TEST_CASE("stops of problems refuse losses of another number", "[train][quick]") {
  mpol::detail::ProblemStops stops(1, 1e-3, 5);
  CHECK_THROWS_AS(stops.record({1, 2, 3}), ShapeError);
  CHECK(stops.state().at("totals").numel() == 0);
}

TEST_CASE("counting the problems of a random model draws no numbers", "[train][quick]") {
  struct RandomImpl : GriddedNetImpl {
    using GriddedNetImpl::GriddedNetImpl;
    Tensor make_sky() override { return GriddedNetImpl::make_sky() * (1 + 0.01 * at::rand({}, torch::kFloat64)); }
  };
  RandomImpl model(GriddedNetOptions(own_grid).dtype(torch::kFloat64));
  at::manual_seed(1);
  const auto first = at::rand({}, torch::kFloat64);
  at::manual_seed(1);
  problem_shape(model);
  CHECK(same(at::rand({}, torch::kFloat64), first));
}

TEST_CASE("a likelihood that adds up its problems is told so", "[train][quick]") {
  struct SummingImpl : OwnLikelihoodImpl {
    using OwnLikelihoodImpl::OwnLikelihoodImpl;
    Tensor chi_squared(const Tensor& sky) override { return OwnLikelihoodImpl::chi_squared(sky).sum(); }
  };
  const Objective objective(std::make_shared<SummingImpl>(own_grid, torch::ones({2, 12, 12}, torch::kFloat64)));
  CHECK_NOTHROW(objective.evaluate(own_model()));
  CHECK_THROWS_AS(objective.evaluate(own_model({3})), ShapeError);
  CHECK_THROWS_WITH(objective.evaluate(own_model({3})), ContainsSubstring("one value per problem has shape [3]"));
}

TEST_CASE("model and likelihood of different grids are one error that names both", "[train][quick]") {
  const std::string name = GENERATE("gridded", "exact", "loose");
  CAPTURE(name);
  const Objective objective(random_likelihood(name, own_grid, 1, torch::kFloat32));
  const auto finer = GriddedNet(GridCoords(0.04, 12));
  CHECK_THROWS_AS(Trainer(finer, objective), ValueError);
  CHECK_THROWS_WITH(Trainer(finer, objective), ContainsSubstring("12 pixels of 0.04\"") &&
                                                   ContainsSubstring("12 pixels of 0.05\"") && ContainsSubstring(name));
  CHECK_THROWS_WITH(objective.evaluate(finer), ContainsSubstring("0.04\"") && ContainsSubstring("0.05\""));
  CHECK_NOTHROW(Trainer(GriddedNet(own_grid), objective));
}

TEMPLATE_TEST_CASE("a likelihood of two functions is a whole one", "[train][quick]", float, double) {
  const auto image = uniform({2, 12, 12}, torch::kFloat64, 1);
  auto likelihood = OwnLikelihood(own_grid, image);
  Likelihood& whole = *likelihood;
  const auto sky = uniform({3, 2, 12, 12}, torch::kFloat64, 2).to(dtype_of<TestType>());
  auto gradient = torch::full_like(sky, 7.0);
  const auto value = whole.value_and_gradient(sky, gradient, Accumulate::overwrite);
  CHECK(value.scalar_type() == torch::kFloat64);
  const double bound = tolerance<TestType>(1e-14, 1e-5);
  CHECK(relative_error(value, (sky.to(torch::kFloat64) - image).square().sum({1, 2, 3})) < bound);
  CHECK(relative_error(gradient, 2 * (sky.to(torch::kFloat64) - image)) < bound);
  whole.value_and_gradient(sky, gradient, Accumulate::add);
  CHECK(relative_error(gradient, 4 * (sky.to(torch::kFloat64) - image)) < bound);
  CHECK(whole.name() == "OwnLikelihood");
  CHECK(whole.samples() == 288);
  CHECK(whole.visibilities_count() == 288);
  CHECK(whole.memory_bytes() == std::int64_t{288} * 8);
  CHECK(whole.coords() == own_grid);
  CHECK(whole.working_state().empty());
  CHECK_THROWS_AS(whole.load_working_state({{"anchors", image}}), FileError);
  // It is one for fused steps too, and for eager ones.
  for (const auto kind : {StepKind::fused, StepKind::eager}) {
    auto net = GriddedNet(GriddedNetOptions(own_grid).nchan(2).dtype(dtype_of<TestType>()));
    const auto result = Trainer(net, Objective(likelihood), TrainOptions().epochs(15).step(kind)).fit();
    CHECK(result.loss.total() < result.history.front().total());
  }
  const auto copy = whole.as_module().clone();
  CHECK(dynamic_cast<Likelihood&>(*copy).coords() == own_grid);
}

TEST_CASE("a class that is no module is told so", "[train][quick]") {
  struct Bare : Likelihood {
    using Likelihood::Likelihood;
    explicit Bare(const GridCoords& coords) : Likelihood(coords) {}
    Tensor chi_squared(const Tensor& sky) override { return sky.sum({-3, -2, -1}); }
    double normalizer() const override { return 1; }
  };
  Bare bare(own_grid);
  CHECK_THROWS_WITH(bare.as_module(), ContainsSubstring("mpol::Module"));
  CHECK_THROWS_AS(bare.name(), ValueError);
}

TEST_CASE("trainers and objectives take holders, pointers and clones alike", "[train][quick]") {
  const SmallProblem problem;
  const auto options = TrainOptions().epochs(4);
  const auto likelihood = ExactLikelihood(problem.coords, random_visibilities(problem.coords, 2, 7), ChannelMap::cube(2));
  const auto fit = [&](const auto& model, const auto& of_data) { return Trainer(model, Objective(of_data), options).fit().loss; };
  const auto expected = fit(problem.model(), likelihood).values;
  CHECK(fit(problem.model().ptr(), likelihood.ptr()).values == expected);
  CHECK(fit(std::shared_ptr<ImageModel>(problem.model().ptr()), std::shared_ptr<Likelihood>(likelihood.ptr())).values ==
        expected);
  CHECK(fit(problem.model()->clone(), likelihood->clone()).values == expected);
  CHECK(fit(std::make_shared<OwnModelImpl>(own_grid, uniform({2, 12, 12}, torch::kFloat64, 1)),
            std::make_shared<OwnLikelihoodImpl>(own_grid, uniform({2, 12, 12}, torch::kFloat64, 2)))
            .values.size() == 2);
  CHECK(Objective(likelihood).evaluate(problem.model()).total.item<double>() > 0);

  auto net = problem.model();
  const auto dirty = net->make_sky().detach();
  CHECK(train_to_dirty_image(net, dirty, TrainToDirtyOptions().steps(1)) >= 0);

  const std::shared_ptr<torch::nn::Module> likelihood_module = likelihood->clone(), model_module = net->clone();
  CHECK_THROWS_WITH(Trainer(likelihood_module, Objective(likelihood)), ContainsSubstring("is no ImageModel"));
  CHECK_THROWS_AS(Objective(model_module), ValueError);
  CHECK_THROWS_AS(Trainer(std::shared_ptr<torch::nn::Module>(), Objective(likelihood)), ValueError);
  // What is neither is refused by the compiler.
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Objective, GriddedDataset>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Objective, GriddedNet>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Trainer, ExactLikelihood, Objective>);
  STATIC_REQUIRE(std::is_constructible_v<Trainer, SimpleNet, Objective>);
}

TEST_CASE("a term that does not depend on the parameters is named", "[train][quick]") {
  const SmallProblem problem;
  const auto detached = Term("detached", 1.0, [](const ModelOutput& out) { return out.sky.detach().sum({-3, -2, -1}); });
  const mpol::testing::Warnings warnings;
  Trainer(problem.model(), problem.objective({detached}), TrainOptions().epochs(3)).fit();
  REQUIRE(warnings.said().size() == 1);
  CHECK_THAT(warnings.said()[0], ContainsSubstring("term detached") && ContainsSubstring("no effect"));
}

TEST_CASE("a trainer tells once why its steps are eager", "[train][quick]") {
  const SmallProblem problem;
  std::vector<std::string> infos;
  const auto before = set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::info) infos.emplace_back(text);
  });
  const auto mine = Term("mine", 1.0, [](const ModelOutput& out) { return out.sky.sum({-3, -2, -1}); });
  Trainer(problem.model(), problem.objective({mine}), TrainOptions().epochs(3)).fit();
  Trainer(problem.model(), problem.objective(), TrainOptions().epochs(3)).fit();
  set_log_sink(before);
  REQUIRE(infos.size() == 1);
  CHECK_THAT(infos[0], ContainsSubstring("eager") && ContainsSubstring("term mine"));
}
