#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/datasets/dartboard.h>

#include "compare.h"
#include "golden.h"
#include "golden_dataset.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

Tensor whole_plane(const GridCoords& coords) { return at::arange(coords.npix() * coords.npix(), torch::kInt64); }

}  // namespace

TEST_CASE("rings and sectors of the default dartboard are MPoL's", "[datasets][quick]") {
  const Golden golden("crossval");
  const Dartboard board(dataset_coords());
  CHECK(relative_error(torch::tensor(board.q_edges(), torch::kFloat64), golden("out_q_edges")) < 1e-14);
  CHECK(relative_error(torch::tensor(board.phi_edges(), torch::kFloat64), golden("out_phi_edges")) < 1e-14);
  CHECK(board.q_bins() == 12);
  CHECK(board.phi_bins() == 8);
}

TEST_CASE("every cell of the plane has the reference's ring and sector", "[datasets][quick]") {
  const Golden golden("crossval");
  const Dartboard board(dataset_coords());
  const auto expected = golden("out_correct_q_index") * board.phi_bins() + golden("out_correct_phi_index");
  CHECK(torch::equal(board.bins_of(whole_plane(board.coords())), expected.flatten()));
}

TEST_CASE("the histogram of the reference data loses no cell", "[datasets][quick]") {
  const Golden golden("crossval");
  const Dartboard board(dataset_coords());
  const auto dataset = golden_dataset();
  const auto histogram = board.histogram(dataset);
  CHECK(torch::equal(histogram, golden("out_correct_histogram")));
  CHECK(torch::equal(histogram.nonzero(), golden("out_correct_nonzero_cells")));
  CHECK(histogram.sum().item<std::int64_t>() == dataset->mask().any(0).sum().item<std::int64_t>());
  CHECK(golden("bug_histogram").sum().item<std::int64_t>() < histogram.sum().item<std::int64_t>());  // MPoL's does
}

TEST_CASE("a cell and its Hermitian partner share a bin, and every cell has one", "[datasets][quick]") {
  const auto npix = GENERATE(4, 30, 64);
  const GridCoords coords(0.02, npix);
  const auto sectors = GENERATE(1, 3, 8);
  std::vector<double> edges;
  for (int i = 0; i <= sectors; ++i) edges.push_back(units::pi * i / sectors);
  const Dartboard board(coords, DartboardOptions().phi_edges(edges));
  const auto bins = board.bins_of(whole_plane(coords)).view({npix, npix});
  CHECK((bins >= 0).all().item<bool>());
  CHECK((bins < board.q_bins() * board.phi_bins()).all().item<bool>());
  const auto partners = bins.flip({0, 1}).roll({1, 1}, {0, 1});
  const auto inner = (bins == partners).slice(0, 0, npix / 2).slice(1, 0, npix / 2);
  CHECK(inner.all().item<bool>());  // row and column npix/2 (u or v = -npix/2 du) have no partner on the grid
}

TEST_CASE("cells beyond the last ring have no bin", "[datasets][quick]") {
  const GridCoords coords(0.02, 16);
  const Dartboard board(coords, DartboardOptions().q_edges({0, 1.5 * coords.du(), 3.5 * coords.du()}));
  const auto bins = board.bins_of(whole_plane(coords)).view({16, 16});
  CHECK(bins[0][0].item<std::int64_t>() == 0);
  CHECK(bins[0][2].item<std::int64_t>() == 8);
  CHECK(torch::equal(bins == -1, coords.packed_q() >= 3.5 * coords.du()));
}

TEST_CASE("a dartboard with gaps is refused", "[datasets][quick]") {
  const GridCoords coords(0.02, 16);
  CHECK_THROWS_AS(Dartboard(coords, DartboardOptions().q_edges({1.0, 2.0})), ValueError);
  CHECK_THROWS_AS(Dartboard(coords, DartboardOptions().q_edges({0.0})), ValueError);
  CHECK_THROWS_AS(Dartboard(coords, DartboardOptions().q_edges({0.0, 2.0, 2.0})), ValueError);
  CHECK_THROWS_AS(Dartboard(coords, DartboardOptions().phi_edges({0.0, 1.0})), ValueError);
  CHECK_THROWS_AS(Dartboard(coords).histogram(golden_dataset()), ShapeError);
}
