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
                                                "chi_squared", "samples", "epochs", "flux_jy", "nonzero_pixels", "as_good",
                                                "train_score", "penalty"});
  CHECK(table.rows[1] == std::vector<double>{1, 1, 0.5, 0.01, 0.02, 0, scan.points[1].score(),
                                             scan.points[1].folds[0].chi_squared, 200, 10, 0.1, 5, 0, 0, 0});
}

TEST_CASE("scores of white noise count the degrees of freedom, and points are compared by them", "[crossval][quick]") {
  auto stiff = point_of({10, 0.3}, 1, 0, 2), free = point_of({1, 0.3}, 0.9, 0, 2);
  stiff.kind = free.kind = Score::sure;
  stiff.degrees_of_freedom = 10;
  free.degrees_of_freedom = 60;
  const double numbers = 2 * stiff.folds[0].samples, stiff_chi = stiff.folds[0].chi_squared, free_chi = free.folds[0].chi_squared;
  CHECK(stiff.score() == Approx((stiff_chi + 20) / numbers));
  auto scan = scan_of({free, stiff});
  scan.choose();
  CHECK(scan.chosen == 1);  // its chi^2 is larger by 40, its degrees of freedom less by 50
  CHECK_FALSE(scan.is_as_good(0));
  const auto table = scan.table();
  CHECK(table.names.back() == "degrees_of_freedom");
  CHECK(table.rows[0].back() == 60);
  CHECK(table.rows[0][6] == free.score());
  for (auto& point : scan.points) point.kind = Score::gcv;
  CHECK(scan.points[0].score() == Approx(free_chi / numbers / std::pow(1 - 60 / numbers, 2)));
  scan.points[0].degrees_of_freedom = numbers + 1;  // more than there are numbers: nothing is left
  CHECK(std::isinf(scan.points[0].score()));
}

TEST_CASE("the discrepancy takes chi squared of 1, the L-curve the least product of misfit and penalty", "[crossval][quick]") {
  std::vector<ScanPoint> points;
  const std::vector<std::pair<double, double>> misfit_and_penalty = {{0.6, 9}, {0.9, 3}, {0.97, 2}, {1.02, 1.5}, {1.6, 1.2}};
  for (const auto& [misfit, penalty] : misfit_and_penalty) {
    points.push_back(point_of({1 + static_cast<double>(points.size()), 1}, 1, 0, 2));
    points.back().folds[0].train = misfit;
    points.back().folds[0].penalty = penalty;
  }
  auto scan = scan_of(points);
  CHECK(scan.discrepancy() == 3U);
  CHECK(scan.l_curve_corner() == 3U);
  scan.points[3].folds[0].penalty = 4;
  CHECK(scan.l_curve_corner() == 4U);
  scan.points[4].folds[0].penalty = 0;  // an empty image has no place on a curve of logarithms
  CHECK(scan.l_curve_corner() == 2U);
  scan.points.resize(2);
  CHECK_FALSE(scan.l_curve_corner());
  CHECK_FALSE(scan_of({point_of({1, 1}, 1, 0, 2)}).discrepancy());
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
