#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/gridded_dataset.h>

#include "compare.h"
#include "golden.h"
#include "golden_dataset.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("dense cubes of a gridded dataset equal MPoL's", "[datasets][quick]") {
  const Golden gridding("gridding");
  const auto dataset = golden_dataset();
  CHECK(torch::equal(dataset->mask(), gridding("out_mask_packed").to(torch::kBool)));
  CHECK(torch::equal(dataset->packed_visibilities(), gridding("out_vis_packed")));
  CHECK(torch::equal(dataset->packed_weights(), gridding("out_weight_packed")));
  CHECK(torch::equal(dataset->at_cells(gridding("out_vis_packed")), dataset->visibilities()));
}

TEST_CASE("two complementary subsets hold every cell once", "[datasets][quick]") {
  const auto dataset = golden_dataset();
  const auto keep = uniform({dataset->ncells()}, torch::kFloat64, 1) < 0.3;
  const auto one = dataset->subset(keep), other = dataset->subset(keep.logical_not());
  CHECK(one->ncells() + other->ncells() == dataset->ncells());
  CHECK(torch::equal(one->mask().logical_xor(other->mask()), dataset->mask()));
  CHECK(relative_error(one->packed_weights() + other->packed_weights(), dataset->packed_weights()) == 0.0);
  CHECK_THROWS_AS(dataset->subset(torch::ones({3}, torch::kBool)), ShapeError);
}

TEST_CASE("cells of a batch of cubes keep the leading dimensions", "[datasets][quick]") {
  const auto dataset = golden_dataset();
  const auto npix = dataset->coords().npix();
  const auto cubes = normal({3, 2, npix, npix}, torch::kComplexDouble, 2);
  const auto values = dataset->at_cells(cubes);
  CHECK(values.sizes() == at::IntArrayRef({3, dataset->ncells()}));
  CHECK(torch::equal(values[1], dataset->at_cells(cubes[1])));
  CHECK_THROWS_AS(dataset->at_cells(torch::zeros({1, npix, npix}, torch::kComplexDouble)), ShapeError);
  CHECK_THROWS_WITH(dataset->at_cells(normal({2, npix, npix}, torch::kFloat64, 2)), ContainsSubstring("FourierCube"));
}

TEST_CASE("a gridded dataset refuses inconsistent arrays", "[datasets][quick]") {
  const GridCoords coords(0.05, 4);
  const auto make = [&](std::initializer_list<std::int64_t> cells, std::int64_t count) {
    return GriddedDataset(coords, 1, torch::tensor(at::ArrayRef<std::int64_t>(cells)),
                          torch::zeros({count}, torch::kComplexDouble), torch::ones({count}, torch::kFloat64));
  };
  CHECK(make({0, 15}, 2)->ncells() == 2);
  CHECK_THROWS_AS(make({0, 16}, 2), DataError);
  CHECK_THROWS_AS(make({-1, 3}, 2), DataError);
  CHECK_THROWS_AS(make({3, 3}, 2), DataError);
  CHECK_THROWS_AS(make({5, 3}, 2), DataError);
  CHECK_THROWS_AS(make({1, 3}, 3), ShapeError);
}
