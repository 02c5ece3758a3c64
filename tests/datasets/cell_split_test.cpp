#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/cell_split.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>

#include "compare.h"
#include "golden.h"
#include "golden_dataset.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Train and test of every fold are disjoint and complete; returns how often each cell is held out, (ncells) int64.
Tensor check_folds(const CellSplit& split, const GriddedDataset& dataset) {
  auto held_out = torch::zeros({dataset->ncells()}, torch::kInt64);
  for (std::int64_t k = 0; k < split.size(); ++k) {
    const auto fold = split[k];
    CHECK_FALSE((fold.train->mask() & fold.test->mask()).any().item<bool>());
    CHECK(torch::equal(fold.train->mask() | fold.test->mask(), dataset->mask()));
    CHECK(same(fold.train->packed_visibilities() + fold.test->packed_visibilities(), dataset->packed_visibilities()));
    CHECK(same(fold.train->packed_weights() + fold.test->packed_weights(), dataset->packed_weights()));
    CHECK(fold.test->ncells() > 0);
    CHECK(fold.train->ncells() > 0);
    held_out += split.test_cells(k).to(torch::kInt64);
  }
  return held_out;
}

GriddedDataset small_dataset(std::int64_t ncells) {
  return GriddedDataset(GridCoords(0.1, 16), 1, at::arange(ncells, torch::kInt64), torch::zeros({ncells}, torch::kComplexDouble),
                        torch::ones({ncells}, torch::kFloat64));
}

}  // namespace

TEST_CASE("random folds are disjoint and complete, and hold every cell but the strongest out once", "[datasets][quick]") {
  const auto dataset = golden_dataset();
  const auto folds = GENERATE(2, 5, 10);
  const RandomCellSplit split(dataset, RandomCellSplitOptions().folds(folds).seed(3));
  const auto held_out = check_folds(split, dataset);
  CHECK(held_out.max().item<std::int64_t>() == 1);
  const auto kept = held_out == 0;
  CHECK(kept.sum().item<std::int64_t>() == dataset->ncells() / 100);
  const auto weakest_kept = dataset->weights().masked_select(kept).min().item<double>();
  CHECK(dataset->weights().masked_select(kept.logical_not()).max().item<double>() <= weakest_kept);
  const auto sizes = torch::bincount(split.held_out_in() + 1).slice(0, 1);
  CHECK(sizes.max().item<std::int64_t>() - sizes.min().item<std::int64_t>() <= 1);
}

TEST_CASE("random folds differ from channel to channel", "[datasets][quick]") {
  const auto dataset = golden_dataset();
  const auto test = RandomCellSplit(dataset)[0].test->mask();
  const auto in_both = dataset->mask()[0] & dataset->mask()[1];
  CHECK((in_both & (test[0] != test[1])).any().item<bool>());
}

TEST_CASE("few cells still have folds, with one cell always in train", "[datasets][quick]") {
  const auto dataset = small_dataset(7);
  const RandomCellSplit split(dataset, RandomCellSplitOptions().folds(6));
  CHECK(check_folds(split, dataset).sum().item<std::int64_t>() == 6);
  CHECK_THROWS_AS(RandomCellSplit(dataset, RandomCellSplitOptions().folds(7)), DataError);
  CHECK_THROWS_AS(RandomCellSplit(dataset, RandomCellSplitOptions().folds(1)), ValueError);
  CHECK_THROWS_AS(RandomCellSplit(dataset, RandomCellSplitOptions().always_train(1)), ValueError);
  CHECK_THROWS_AS(split[6], ValueError);
  CHECK_THROWS_AS(split[-1], ValueError);
}

TEST_CASE("dartboard folds are disjoint and complete, and hold every bin but the innermost ring out once", "[datasets][quick]") {
  const auto dataset = golden_dataset();
  const auto folds = GENERATE(2, 5, 10);
  const DartboardSplit split(dataset, DartboardSplitOptions().folds(folds).seed(8));
  const auto held_out = check_folds(split, dataset);
  const Dartboard board(dataset->coords());
  const auto bins = board.bins_of(dataset->cells());
  CHECK(torch::equal(held_out == 0, bins < board.phi_bins()));
  CHECK(held_out.max().item<std::int64_t>() == 1);
  for (std::int64_t bin = 0; bin < board.q_bins() * board.phi_bins(); ++bin) {  // bins stay whole, in all channels
    const auto of_bin = split.held_out_in().masked_select(bins == bin);
    if (of_bin.numel() > 0) CHECK((of_bin == of_bin[0]).all().item<bool>());
  }
}

TEST_CASE("no cell that MPoL's dartboard loses is lost", "[datasets][quick]") {
  const Golden golden("crossval");
  const auto dataset = golden_dataset();
  const auto lost = golden("bug_dartboard_lost_mask").to(torch::kBool);
  REQUIRE(lost.any().item<bool>());
  const DartboardSplit split(dataset);
  for (std::int64_t k = 0; k < split.size(); ++k) {
    const auto fold = split[k];
    CHECK(((fold.train->mask() | fold.test->mask()) & lost).sum().item<std::int64_t>() == lost.sum().item<std::int64_t>());
  }
}

TEST_CASE("no cell that MPoL's random split loses is lost", "[datasets][quick]") {
  const Golden golden("crossval");
  const auto dataset = golden_dataset();
  const auto of_mpol = (golden("bug_random_train_masks") + golden("bug_random_test_masks")).any(0);
  const auto lost = dataset->mask() & of_mpol.logical_not();
  REQUIRE(torch::equal(lost.sum({-2, -1}), golden("bug_random_lost_count").to(torch::kInt64)));
  REQUIRE(lost.any().item<bool>());
  const RandomCellSplit split(dataset);
  for (std::int64_t k = 0; k < split.size(); ++k) {
    const auto fold = split[k];
    CHECK(torch::equal((fold.train->mask() | fold.test->mask()) & lost, lost));
  }
}

TEST_CASE("a mask keeps the cells that it names, with their values", "[datasets][quick]") {
  const auto dataset = golden_dataset();
  const auto plane = dataset->coords().packed_q() < 0.4 * dataset->coords().q_max();
  const auto kept = plane.flatten().index_select(0, dataset->cells().remainder(plane.numel()));
  const GriddedDataset masked(dataset->subset(kept));
  CHECK(torch::equal(masked->mask(), dataset->mask() & plane));
  CHECK(same(masked->packed_visibilities(), dataset->packed_visibilities() * plane));
  CHECK(same(masked->packed_weights(), dataset->packed_weights() * plane));
}

TEST_CASE("without short baselines the innermost ring that holds data is always in train", "[datasets][quick]") {
  const GridCoords coords(0.1, 32);
  const auto q = coords.packed_q().flatten();
  const auto cells = (q > 8 * coords.du()).nonzero().squeeze(1);
  const auto count = cells.size(0);
  const GriddedDataset dataset(coords, 1, cells, torch::zeros({count}, torch::kComplexDouble),
                               torch::ones({count}, torch::kFloat64));
  const DartboardSplit split(dataset);
  const auto always = (check_folds(split, dataset) == 0);
  const auto bins = Dartboard(coords).bins_of(cells);
  const auto innermost = bins.min().item<std::int64_t>() / 8;
  CHECK(innermost > 0);
  CHECK(torch::equal(always, bins.floor_divide(8) == innermost));
}

TEST_CASE("folds depend on the seed and on nothing else", "[datasets][quick]") {
  const auto dataset = golden_dataset();
  const auto dart = [&](std::uint64_t seed) { return DartboardSplit(dataset, DartboardSplitOptions().seed(seed)).held_out_in(); };
  const auto random = [&](std::uint64_t seed) {
    return RandomCellSplit(dataset, RandomCellSplitOptions().seed(seed)).held_out_in();
  };
  CHECK(torch::equal(dart(1), dart(1)));
  CHECK_FALSE(torch::equal(dart(1), dart(2)));
  CHECK(torch::equal(random(1), random(1)));
  CHECK_FALSE(torch::equal(random(1), random(2)));
}

TEST_CASE("chi squared of the held-out cells of all folds adds up to that of the data", "[datasets][quick]") {
  const Golden golden("crossval"), file("dataset");
  const auto dataset = golden_dataset();
  const auto sky = file("in_image_sky");
  const auto chi_squared = [&](const GriddedDataset& data) {
    return data->ncells() == 0 ? 0.0 : GriddedLikelihood(data)->chi_squared(sky).item<double>();
  };
  const RandomCellSplit split(dataset);
  double sum = chi_squared(GriddedDataset(dataset->subset(split.held_out_in() < 0)));
  for (std::int64_t k = 0; k < split.size(); ++k) sum += chi_squared(split[k].test);
  CHECK(sum == Approx(golden.number("out_score_full_chi2_of_image")).epsilon(1e-12));
}

TEST_CASE("a dartboard that does not fit the data cannot split it", "[datasets][quick]") {
  const auto dataset = golden_dataset();
  const auto coords = dataset->coords();
  const Dartboard small(coords, DartboardOptions().q_edges({0, 2 * coords.du(), 4 * coords.du()}));
  CHECK_THROWS_AS(DartboardSplit(dataset, DartboardSplitOptions().dartboard(small)), DataError);
  CHECK_THROWS_AS(DartboardSplit(dataset, DartboardSplitOptions().dartboard(Dartboard(GridCoords(0.1, 8)))), ShapeError);
  CHECK_THROWS_AS(DartboardSplit(dataset, DartboardSplitOptions().folds(1000)), DataError);
  CHECK_THROWS_AS(DartboardSplit(dataset, DartboardSplitOptions().folds(1)), ValueError);
}
