#include "catch.h"

#include <cmath>
#include <limits>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/crossval/scan.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr std::int64_t cells = 400;

/// A point whose held-out cells have a chi^2 above `common` by `mean` in the mean, scattered by `spread`.
ScanPoint point_of(std::vector<double> c, double mean, double spread, std::uint64_t seed) {
  const auto common = uniform({cells}, torch::kFloat64, 1) * 50;  // far more than the points differ by
  auto difference = normal({cells}, torch::kFloat64, seed);
  difference = (difference - difference.mean()) / (difference - difference.mean()).square().mean().sqrt();
  ScanPoint point;
  point.c = std::move(c);
  point.cells = common + mean + spread * difference;
  point.folds = {{point.cells.sum().item<double>(), cells / 2.0, 10, 0.1, 5}};
  return point;
}

Scan scan_of(std::vector<ScanPoint> points) {
  Scan scan;
  scan.axes = {{"sparsity", 0.5, 1, 0.01, 30, {}}, {"tv", 2, 0.3, 0.01, 30, {}}};
  scan.points = std::move(points);
  return scan;
}

}  // namespace

TEST_CASE("the point of least score is chosen, and those that held-out cells cannot tell from it are known",
          "[crossval][quick]") {
  // The standard deviation of the mean over 400 cells is a twentieth of the spread.
  auto scan = scan_of({point_of({3, 0.3}, 1 + 0.9 * 4 / 20, 4, 3), point_of({1, 0.3}, 1, 0, 2),
                       point_of({10, 0.3}, 1 + 1.1 * 4 / 20, 4, 4), point_of({0.3, 0.3}, 1.05, 4, 5)});
  scan.choose();
  CHECK(scan.chosen == 1);
  CHECK(scan.lambda(scan.chosen, 0) == 0.5);
  CHECK(scan.lambda(scan.chosen, 1) == 0.6);
  CHECK(scan.is_as_good(0));
  CHECK(scan.is_as_good(1));
  CHECK_FALSE(scan.is_as_good(2));
  CHECK(scan.is_as_good(3));
  CHECK_FALSE(scan.is_flat());
  CHECK(scan.at_bound().empty());

  auto flat = scan_of({point_of({1, 0.3}, 1, 0, 2), point_of({3, 0.3}, 1.1, 4, 3), point_of({30, 0.01}, 1.15, 4, 4)});
  flat.choose();
  CHECK(flat.is_flat());
  CHECK(flat.chosen == 0);
  flat.points.resize(2);  // too few to say so
  CHECK_FALSE(flat.is_flat());
}

TEST_CASE("a score is chi squared for each real number, and a choice at the end of its range is said", "[crossval][quick]") {
  auto scan = scan_of({point_of({30, 0.3}, 1, 0, 2), point_of({1, 0.01}, 5, 0, 3)});
  const auto& fold = scan.points[0].folds[0];
  CHECK(scan.points[0].score() == fold.chi_squared / (2 * fold.samples));
  scan.choose();
  CHECK(scan.at_bound() == std::vector<std::string>{"sparsity"});
  scan.axes[0].values = {1, 30, 100};
  CHECK(scan.at_bound().empty());
  scan.axes[1].values = {0.3, 1};
  CHECK(scan.at_bound() == std::vector<std::string>{"tv"});

  const auto table = scan.table();
  REQUIRE(table.rows.size() == 2);
  CHECK(table.names == std::vector<std::string>{"point", "c_sparsity", "lambda_sparsity", "c_tv", "lambda_tv", "fold", "score",
                                                "chi_squared", "samples", "epochs", "flux_jy", "nonzero_pixels", "as_good"});
  CHECK(table.rows[1] == std::vector<double>{1, 1, 0.5, 0.01, 0.02, 0, scan.points[1].score(),
                                             scan.points[1].folds[0].chi_squared, 200, 10, 0.1, 5, 0});
}

TEST_CASE("fits that diverged are never chosen, and a scan of nothing else is an error", "[crossval][quick]") {
  auto broken = point_of({30, 30}, 0, 0, 2);
  broken.folds[0].chi_squared = std::numeric_limits<double>::infinity();
  auto scan = scan_of({broken, point_of({1, 1}, 1, 0, 3)});
  scan.choose();
  CHECK(scan.chosen == 1);
  auto nothing = scan_of({broken});
  CHECK_THROWS_AS(nothing.choose(), DivergedError);
  auto empty = scan_of({});
  CHECK_THROWS_AS(empty.choose(), ValueError);
}
