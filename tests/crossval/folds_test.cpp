#include "catch.h"

#include <map>
#include <set>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/crossval/folds.h>

#include "compare.h"
#include "random.h"
#include "small_grid.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

using Cell = std::pair<std::int64_t, std::int64_t>;

/// The cell of a sample, or its partner's: whichever is later.
Cell cell_of(const Visibilities& visibilities, std::int64_t sample) {
  const auto uv = visibilities.baselines().channel(visibilities.nchan() / 2);
  const double u = uv.first[sample].item<double>(), v = uv.second[sample].item<double>();
  const auto own = [&](double sign) { return Cell(small_grid.uv_cell(sign * u), small_grid.uv_cell(sign * v)); };
  return std::max(own(1), own(-1));
}

/// Every sample with its Hermitian partner's place taken by another sample of other data.
Visibilities with_partners(const Visibilities& visibilities) {
  const auto u = visibilities.baselines().u(), v = visibilities.baselines().v();
  return {Baselines::in_lambda(at::cat({u, -u}, 1), at::cat({v, -v}, 1)),
          at::cat({visibilities.data(), visibilities.data() * 2}, 1),
          at::cat({visibilities.weights(), visibilities.weights()}, 1)};
}

void check_complete(const Folds& folds, std::int64_t nvis) {
  CHECK(folds.of_sample().numel() == nvis);
  for (std::int64_t fold = 0; fold < folds.size(); ++fold) {
    const auto test = folds.test_samples(fold), train = folds.train_samples(fold);
    CHECK(test.numel() > 0);
    CHECK(train.numel() > 0);
    CHECK(same(std::get<0>(at::cat({test, train}).sort()), at::arange(nvis)));
  }
}

}  // namespace

TEST_CASE("samples of a uv cell and of its Hermitian partner's are held out together", "[crossval][quick]") {
  const auto visibilities = with_partners(random_visibilities(small_grid, 1, 5));
  const auto split = GENERATE(std::string("random cells"), std::string("dartboard"));
  const auto options = FoldOptions().folds(4).seed(2);
  const auto folds = split == "dartboard" ? Folds::dartboard(small_grid, visibilities, options)
                                          : Folds::random_cells(small_grid, visibilities, options);
  CAPTURE(split);
  CHECK(folds.kind() == split);
  CHECK(folds.size() == 4);
  check_complete(folds, visibilities.nvis());
  std::map<Cell, std::set<std::int64_t>> folds_of_cell;
  for (std::int64_t i = 0; i < visibilities.nvis(); ++i)
    folds_of_cell[cell_of(visibilities, i)].insert(folds.of_sample()[i].item<std::int64_t>());
  std::set<std::int64_t> seen;
  for (const auto& [cell, own] : folds_of_cell) {
    CAPTURE(cell.first, cell.second);
    CHECK(own.size() == 1);
    seen.insert(*own.begin());
  }
  CHECK(seen == std::set<std::int64_t>{-1, 0, 1, 2, 3});  // and something trains in all
}

TEST_CASE("the strongest cells, and the innermost ring of a dartboard, train in every fold", "[crossval][quick]") {
  const auto visibilities = random_visibilities(small_grid, 1, 6);
  const auto folds = Folds::random_cells(small_grid, visibilities, FoldOptions().always_train(0.1));
  std::map<Cell, double> weight;
  for (std::int64_t i = 0; i < visibilities.nvis(); ++i)
    weight[cell_of(visibilities, i)] += visibilities.weights()[0][i].item<double>();
  double weakest_kept = 1e300, strongest_held = 0;
  for (std::int64_t i = 0; i < visibilities.nvis(); ++i) {
    const double own = weight[cell_of(visibilities, i)];
    if (folds.of_sample()[i].item<std::int64_t>() < 0) weakest_kept = std::min(weakest_kept, own);
    else strongest_held = std::max(strongest_held, own);
  }
  CHECK(strongest_held <= weakest_kept);

  const auto board = Folds::dartboard(small_grid, visibilities);
  const auto [u, v] = visibilities.baselines().channel(0);
  const auto q = (u.square() + v.square()).sqrt();
  const auto held = board.of_sample() >= 0;
  CHECK(q.masked_select(held.logical_not()).max().item<double>() <
        q.masked_select(held).min().item<double>() + 2 * small_grid.du());
  CHECK(held.sum().item<std::int64_t>() > visibilities.nvis() / 2);
}

TEST_CASE("folds are the same for the same seed and others for another", "[crossval][quick]") {
  const auto visibilities = random_visibilities(small_grid, 2, 7);
  const auto of = [&](std::uint64_t seed) {
    return Folds::random_cells(small_grid, visibilities, FoldOptions().seed(seed)).of_sample();
  };
  CHECK(same(of(1), of(1)));
  CHECK_FALSE(same(of(1), of(2)));
}

TEST_CASE("blocks stay whole, and folds of one's own are taken as they are", "[crossval][quick]") {
  const auto labels = at::arange(120, torch::kInt64).div(10, "floor") * 7;
  const auto folds = Folds::blocks(labels, FoldOptions().folds(3));
  CHECK(folds.kind() == "blocks");
  check_complete(folds, 120);
  std::map<std::int64_t, std::set<std::int64_t>> folds_of_block;
  for (std::int64_t i = 0; i < 120; ++i)
    folds_of_block[labels[i].item<std::int64_t>()].insert(folds.of_sample()[i].item<std::int64_t>());
  for (const auto& [block, own] : folds_of_block) {
    CHECK(own.size() == 1);
    CHECK(*own.begin() >= 0);
  }
  const auto own = at::arange(9, torch::kInt64).remainder(4) - 1;
  CHECK(same(Folds::custom(own, 3).of_sample(), own));
  CHECK(same(Folds::custom(own, 3).test_samples(0), torch::tensor(std::vector<std::int64_t>{1, 5})));
}

TEST_CASE("folds that cannot be are refused", "[crossval][quick]") {
  const auto visibilities = random_visibilities(small_grid, 1, 8);
  CHECK_THROWS_AS(Folds::random_cells(small_grid, visibilities, FoldOptions().folds(1)), ValueError);
  CHECK_THROWS_AS(Folds::random_cells(small_grid, visibilities, FoldOptions().folds(1000)), DataError);
  CHECK_THROWS_AS(Folds::blocks(at::arange(3, torch::kInt64), FoldOptions().folds(4)), DataError);
  CHECK_THROWS_AS(Folds::blocks(at::arange(3, torch::kFloat64)), ShapeError);
  CHECK_THROWS_AS(Folds::custom(at::arange(3, torch::kInt64), 2), ValueError);
  CHECK_THROWS_AS(Folds::custom(at::arange(2, torch::kInt64), 3), DataError);  // a fold without samples
  CHECK_THROWS_AS(Folds::random_cells(GridCoords(5, 16), visibilities), DataError);
  CHECK_THROWS_AS(Folds::random_cells(small_grid, visibilities).test_samples(5), ValueError);
  CHECK_THROWS_AS(Folds::random_cells(small_grid, visibilities).train_samples(-1), ValueError);
}
