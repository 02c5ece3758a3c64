#include "catch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/crossval/cross_validator.h>
#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "random.h"
#include "small_grid.h"
#include "temporary_folder.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// A source on noise, seen by loose visibilities.
Visibilities observation(std::int64_t nchan = 1, std::uint64_t seed = 11) {
  const auto random = random_visibilities(small_grid, nchan, seed);
  const auto& uv = random.baselines();
  std::vector<Tensor> rows;
  for (std::int64_t channel = 0; channel < nchan; ++channel) {
    const auto [u, v] = uv.channel(channel);
    const auto envelope = at::exp((u.square() + v.square()) * (-2 / std::pow(uv.max_abs_u(), 2)));
    rows.push_back(torch::complex(envelope, at::zeros_like(envelope)));
  }
  const auto noise = normal({nchan, random.nvis()}, torch::kComplexDouble, seed + 50) * std::sqrt(2.0) / random.weights().sqrt();
  return {uv, at::stack(rows) + noise, random.weights()};
}

std::vector<FoldData> folds_of(const Visibilities& visibilities, const Folds& folds) {
  return exact_fold_data(small_grid, visibilities, folds);
}

FoldModel model_for(torch::Dtype dtype = torch::kFloat64) {
  return [dtype](const FoldData& fold) -> std::shared_ptr<ImageModel> {
    const auto start = auto_start(fold.train_cells);
    return GriddedNet(GriddedNetOptions(small_grid).base_cube(start).dtype(dtype).pixel_mapping(nonnegative_mapping())).ptr();
  };
}

std::vector<Term> both_terms() { return {terms::sparsity(1e-3), terms::tv_image(1e-3)}; }

std::vector<SearchAxis> both_axes() { return {{"sparsity", 1e-3, 1, 0.01, 30, {}}, {"tv", 1e-3, 0.3, 0.01, 30, {}}}; }

void check_same(const Scan& a, const Scan& b) {
  REQUIRE(a.points.size() == b.points.size());
  CHECK(a.chosen == b.chosen);
  CHECK(a.table().rows == b.table().rows);
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    CHECK(same(a.points[i].cells, b.points[i].cells));
    CHECK(same(a.points[i].image, b.points[i].image));
  }
}

}  // namespace

TEST_CASE("the likelihoods of a fold are those of its samples", "[crossval][quick]") {
  const auto visibilities = observation(2);
  const auto folds = Folds::random_cells(small_grid, visibilities, FoldOptions().folds(3).seed(4));
  const auto exact = exact_fold_data(small_grid, visibilities, folds);
  const auto apart = fold_data(small_grid, visibilities, folds, [](const Visibilities& part, const GriddedDataset&) {
    return ExactLikelihood(small_grid, part, ChannelMap::cube(2)).ptr();
  });
  const auto sky = uniform({2, 16, 16}, torch::kFloat64, 9);
  REQUIRE(exact.size() == 3);
  double tested = 0;
  for (std::size_t f = 0; f < exact.size(); ++f) {
    for (const auto& [own, direct] : {std::pair(exact[f].train, apart[f].train), std::pair(exact[f].test, apart[f].test)}) {
      CHECK(own->chi_squared(sky).item<double>() == Approx(direct->chi_squared(sky).item<double>()).epsilon(1e-11));
      CHECK(own->samples() == direct->samples());
      CHECK(own->normalizer() == direct->normalizer());
    }
    CHECK(exact[f].train->samples() + exact[f].test->samples() == 2 * visibilities.nvis());
    CHECK(exact[f].test_cells->ncells() == static_cast<std::int64_t>(exact[f].test->normalizer()));
    CHECK(exact[f].train_cells->nvis() == exact[f].train->samples());
    tested += static_cast<double>(exact[f].test->samples());
  }
  CHECK(tested < 2 * static_cast<double>(visibilities.nvis()));  // some train in every fold
  const auto other = Folds::blocks(at::arange(10, torch::kInt64));
  CHECK_THROWS_AS(exact_fold_data(small_grid, visibilities, other), ShapeError);
}

TEMPLATE_TEST_CASE("a fold's fit and score are those of a run of its own", "[crossval]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto visibilities = observation();
  const auto folds = Folds::random_cells(small_grid, visibilities, FoldOptions().folds(3));
  const auto train = TrainOptions().learning_rate(0.05).epochs(60);
  const auto data = folds_of(visibilities, folds);
  const auto scan = CrossValidator(data, model_for(dtype), both_terms(), both_axes(),
                                   CrossValidatorOptions().train(train).search(Search::compass(0.5, 1)))
                        .run();
  REQUIRE(scan.points.size() == 1);
  CHECK(scan.exhausted);
  const auto alone = folds_of(visibilities, folds);
  double chi_squared = 0, samples = 0;
  for (std::size_t f = 0; f < alone.size(); ++f) {
    const auto model = std::dynamic_pointer_cast<GriddedNetImpl>(model_for(dtype)(alone[f]));
    const auto objective = Objective(alone[f].train, {terms::sparsity(1e-3), terms::tv_image(0.3e-3)});
    const auto result = Trainer(std::shared_ptr<ImageModel>(model), objective, train).fit();
    const torch::NoGradGuard no_grad;
    const Tensor sky = model->make_sky().to(torch::kFloat64);
    const Tensor chi_squared_of_test = alone[f].test->chi_squared(sky);
    const double own = chi_squared_of_test.item<double>();
    CHECK(scan.points[0].folds[f].chi_squared == Approx(own).epsilon(1e-9));
    CHECK(scan.points[0].folds[f].epochs == result.epochs);
    CHECK(scan.points[0].folds[f].flux == Approx(sky.sum().item<double>() * small_grid.cell_area()).epsilon(1e-9));
    chi_squared += own;
    samples += static_cast<double>(alone[f].test->samples());
  }
  CHECK(scan.points[0].score() == Approx(chi_squared / (2 * samples)).epsilon(1e-9));
}

TEMPLATE_TEST_CASE("POGM's scores are those of converged fits", "[crossval]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto visibilities = observation();
  const auto data = folds_of(visibilities, Folds::random_cells(small_grid, visibilities, FoldOptions().folds(3)));
  const auto scan_to = [&](double tolerance) {
    const auto train = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(tolerance).epochs(20000);
    return CrossValidator(data, model_for(dtype), both_terms(), both_axes(),
                          CrossValidatorOptions().train(train).search(Search::compass(0.5, 5)))
        .run();
  };
  const auto quick = scan_to(1e-2), precise = scan_to(1e-5);
  REQUIRE(quick.points.size() == precise.points.size());
  double range = 0;
  for (const auto& point : precise.points) range = std::max(range, std::abs(point.score() - precise.points[0].score()));
  for (std::size_t i = 0; i < quick.points.size(); ++i)
    CHECK(quick.points[i].score() == Approx(precise.points[i].score()).margin(0.1 * range));
}

TEST_CASE("no fold's image depends on what the fold is tested by", "[crossval]") {
  const auto visibilities = observation();
  const auto folds = Folds::random_cells(small_grid, visibilities, FoldOptions().folds(3));
  // Other data in fold 0's test set alone.
  const auto tested = folds.of_sample() == 0;
  const auto noise = normal({1, visibilities.nvis()}, torch::kComplexDouble, 77);
  const Visibilities other(visibilities.baselines(), at::where(tested, visibilities.data() + noise, visibilities.data()),
                           visibilities.weights());
  auto axes = both_axes();
  axes[0].values = {1, 3};
  axes[1].values = {0.3};
  const auto scan_of = [&](const Visibilities& data) {
    // With an exact likelihood of each part: as a difference of sums it has the others' rounding.
    const auto parts = fold_data(small_grid, data, folds, [](const Visibilities& part, const GriddedDataset&) {
      return ExactLikelihood(small_grid, part, ChannelMap::cube(1)).ptr();
    });
    return CrossValidator(parts, model_for(), both_terms(), axes, CrossValidatorOptions().search(Search::grid())).run();
  };
  const auto before = scan_of(visibilities), after = scan_of(other);
  REQUIRE(before.points.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& was = before.points[i].folds;
    const auto& is = after.points[i].folds;
    CHECK(is[0].chi_squared > 1.1 * was[0].chi_squared);
    CHECK(is[0].flux == was[0].flux);  // its image, to the last bit
    CHECK(is[0].epochs == was[0].epochs);
    CHECK(is[1].flux != was[1].flux);  // trained on the other data
  }
}

TEST_CASE("a compass ends at a point that is better than its neighbours", "[crossval]") {
  const auto visibilities = observation();
  const auto data = folds_of(visibilities, Folds::random_cells(small_grid, visibilities, FoldOptions().folds(3)));
  const auto scan =
      CrossValidator(data, model_for(), both_terms(), both_axes(), CrossValidatorOptions().search(Search::compass(0.5, 60)))
          .run();
  CHECK_FALSE(scan.exhausted);
  CHECK_FALSE(scan.interrupted);
  CHECK(scan.fits == static_cast<std::int64_t>(3 * scan.points.size()));
  CHECK(scan.points[0].c == std::vector<double>{1, 0.3});
  const auto& best = scan.best();
  for (std::size_t axis = 0; axis < 2; ++axis) {
    for (const double step : {std::sqrt(10.0), 1 / std::sqrt(10.0)}) {
      auto c = best.c;
      c[axis] = std::clamp(c[axis] * step, 0.01, 30.0);
      const auto near = [&](const ScanPoint& point) {
        return std::abs(point.c[0] / c[0] - 1) < 1e-6 && std::abs(point.c[1] / c[1] - 1) < 1e-6;
      };
      const auto found = std::find_if(scan.points.begin(), scan.points.end(), near);
      CAPTURE(axis, step);
      REQUIRE(found != scan.points.end());
      CHECK(found->score() >= best.score());
    }
  }
}

TEST_CASE("grids try all combinations, random searches the same ones for the same seed", "[crossval]") {
  const auto visibilities = observation();
  const auto data = folds_of(visibilities, Folds::random_cells(small_grid, visibilities, FoldOptions().folds(2)));
  auto axes = both_axes();
  axes[0].values = {0.5, 5};
  axes[1].values = {0.1, 1, 10};
  const auto run = [&](const Search& search) {
    return CrossValidator(data, model_for(), both_terms(), axes, CrossValidatorOptions().search(search)).run();
  };
  std::set<std::vector<double>> tried;
  for (const auto& point : run(Search::grid()).points) tried.insert(point.c);
  CHECK(tried == std::set<std::vector<double>>{{0.5, 0.1}, {0.5, 1}, {0.5, 10}, {5, 0.1}, {5, 1}, {5, 10}});
  const auto first = run(Search::random(4, 3)), again = run(Search::random(4, 3)), other = run(Search::random(4, 4));
  check_same(first, again);
  REQUIRE(first.points.size() == 4);
  CHECK(first.points[0].c == std::vector<double>{1, 0.3});
  CHECK(first.points[1].c != other.points[1].c);
  for (const auto& point : first.points) {
    CHECK(*std::min_element(point.c.begin(), point.c.end()) >= 0.01);
    CHECK(*std::max_element(point.c.begin(), point.c.end()) <= 30);
  }
}

TEMPLATE_TEST_CASE("a scan that is interrupted goes on from there to the same bits", "[crossval]", float, double) {
  const TemporaryFolder scratch;
  const auto visibilities = observation();
  const auto folds = Folds::random_cells(small_grid, visibilities, FoldOptions().folds(3));
  const auto options = CrossValidatorOptions().search(Search::compass(0.5, 9)).fingerprint({"data = 1"});
  const auto run = [&](CrossValidatorOptions how) {
    return CrossValidator(folds_of(visibilities, folds), model_for(dtype_of<TestType>()), both_terms(), both_axes(),
                          std::move(how))
        .run();
  };
  const auto whole = run(options);
  REQUIRE(whole.points.size() > 4);
  std::int64_t polls = 0, limit = 250;
  auto interruptible = options;
  interruptible.state(scratch / "scan.safetensors");
  auto train = interruptible.train();
  interruptible.train(train.interrupted([&] { return ++polls > limit; }));
  int interruptions = 0;
  auto scan = run(interruptible);
  while (scan.interrupted) {
    ++interruptions;
    CHECK(scan.points.size() < whole.points.size());
    polls = 0;
    scan = run(interruptible);
    REQUIRE(interruptions < 40);
  }
  CHECK(interruptions > 1);
  check_same(scan, whole);
  CHECK(scan.fits < whole.fits);

  // What is kept of other data is not taken.
  std::vector<std::string> said;
  const auto sink = set_log_sink([&](LogLevel, std::string_view message) { said.emplace_back(message); });
  auto other = options;
  const auto anew = run(other.state(scratch / "scan.safetensors").fingerprint({"data = 2"}));
  set_log_sink(sink);
  CHECK(anew.fits == whole.fits);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("the scan begins anew") != std::string::npos);
}

TEST_CASE("what cannot be searched is refused", "[crossval][quick]") {
  const auto visibilities = observation();
  const auto data = folds_of(visibilities, Folds::random_cells(small_grid, visibilities, FoldOptions().folds(2)));
  const auto made_with = [&](std::vector<SearchAxis> axes) {
    return CrossValidator(data, model_for(), both_terms(), std::move(axes));
  };
  CHECK_THROWS_AS(made_with({}), ValueError);
  CHECK_THROWS_AS(made_with({{"entropy", 1, 1, 0.01, 30, {}}}), ValueError);
  CHECK_THROWS_AS(made_with({{"tv", 0, 1, 0.01, 30, {}}}), ValueError);
  CHECK_THROWS_AS(made_with({{"tv", 1, 1, 3, 0.3, {}}}), ValueError);
  CHECK_THROWS_AS(made_with({{"tv", 1, 1, 0.01, 30, {-1}}}), ValueError);
  CHECK_THROWS_AS(CrossValidator({data[0]}, model_for(), both_terms(), both_axes()), ValueError);
  CHECK_THROWS_AS(Search::compass(0), ValueError);
  CHECK_THROWS_AS(Search::random(0), ValueError);
}

TEMPLATE_TEST_CASE("folds that are fitted at once end as each does alone", "[crossval]", float, double) {
  const auto visibilities = observation();
  const auto folds = Folds::random_cells(small_grid, visibilities, FoldOptions().folds(5));
  const auto scan_of = [&](std::int64_t at_once) {
    const auto data = folds_of(visibilities, folds);  // anew: in float32 they keep what they were asked before
    const auto how = CrossValidatorOptions().search(Search::compass(0.5, 5)).folds_at_once(at_once);
    return CrossValidator(data, model_for(dtype_of<TestType>()), both_terms(), both_axes(), how).run();
  };
  const auto alone = scan_of(1), pairs = scan_of(2), all = scan_of(5);
  REQUIRE(alone.points.size() == 5);
  check_same(alone, scan_of(0));  // on a CPU
  for (const auto* scan : {&pairs, &all}) {
    REQUIRE(scan->points.size() == alone.points.size());
    CHECK(scan->chosen == alone.chosen);
    for (std::size_t i = 0; i < alone.points.size(); ++i) {
      const auto &one = alone.points[i], &other = scan->points[i];
      CHECK(other.score() == Approx(one.score()).epsilon(tolerance<TestType>(1e-9, 1e-4)));
      CHECK(relative_error(other.image, one.image) < tolerance<TestType>(1e-6, 2e-3));  // kept as float32
      for (std::size_t f = 0; f < 5; ++f) {
        CHECK(other.folds[f].chi_squared == Approx(one.folds[f].chi_squared).epsilon(tolerance<TestType>(1e-9, 1e-3)));
        if (std::is_same_v<TestType, double>) CHECK(other.folds[f].epochs == one.folds[f].epochs);
      }
    }
  }
  std::set<std::int64_t> epochs;
  for (const auto& fold : all.points[0].folds) epochs.insert(fold.epochs);
  CHECK(epochs.size() > 1);  // those that had come to their end stood still
}

TEMPLATE_TEST_CASE("folds of gridded data are fitted at once by Adam, each to its own end", "[crossval]", float, double) {
  const auto visibilities = observation();
  const auto data = fold_data(small_grid, visibilities, Folds::random_cells(small_grid, visibilities, FoldOptions().folds(3)),
                              [](const Visibilities&, const GriddedDataset& cells) { return GriddedLikelihood(cells).ptr(); });
  const FoldModel model = [](const FoldData& fold) -> std::shared_ptr<ImageModel> {
    return GriddedNet(GriddedNetOptions(fold.train_cells->coords()).dtype(dtype_of<TestType>())).ptr();
  };
  const auto train = TrainOptions().optimizer(OptimizerKind::adam).learning_rate(0.1).epochs(400).stop_relative(1e-3);
  const auto scan_of = [&](std::int64_t at_once) {
    const auto how = CrossValidatorOptions().search(Search::compass(0.5, 3)).folds_at_once(at_once).train(train);
    return CrossValidator(data, model, both_terms(), both_axes(), how).run();
  };
  check_same(scan_of(1), scan_of(3));
}

TEST_CASE("folds that cannot be fitted at once are refused", "[crossval][quick]") {
  const auto visibilities = observation();
  const auto data = folds_of(visibilities, Folds::random_cells(small_grid, visibilities, FoldOptions().folds(2)));
  const auto made_with = [&](const TrainOptions& train, std::int64_t at_once) {
    return CrossValidator(data, model_for(), both_terms(), both_axes(),
                          CrossValidatorOptions().train(train).folds_at_once(at_once));
  };
  CHECK_THROWS_AS(made_with(TrainOptions().optimizer(OptimizerKind::lbfgs), 2), ValueError);
  CHECK_THROWS_AS(made_with(TrainOptions().tolerance(1e-3), 2), ValueError);
  CHECK_THROWS_AS(made_with(TrainOptions(), -1), ValueError);
  CHECK_NOTHROW(made_with(TrainOptions().optimizer(OptimizerKind::lbfgs), 1));
}
