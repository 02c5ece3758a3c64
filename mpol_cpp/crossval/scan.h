#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// A weight lambda that is searched, of one regularizer: lambda = c times its unit (lambda_unit()).
struct SearchAxis {
  std::string term;                 ///< the name of its Term
  double unit = 1;                  ///< lambda where c is 1
  double start = 1;                 ///< c where a compass begins
  double low = 0.01, high = 30;     ///< c that a compass and random points stay within
  std::vector<double> values = {};  ///< c of a grid; empty: five in half decades around the start
};

/// How a fold did at some weights.
struct FoldScore {
  double chi_squared = 0, samples = 0;  ///< of its held-out data
  std::int64_t epochs = 0;              ///< of the fit
  double flux = 0;                      ///< of its image, all channels, Jy
  std::int64_t nonzero = 0;             ///< pixels above 1e-4 of its peak, all channels
};

/// All folds at some weights.
struct ScanPoint {
  std::vector<double> c;         ///< of each axis
  std::vector<FoldScore> folds;  ///< how each did, in their order
  Tensor cells;                  ///< W |V - M|^2 of the held-out cells of all folds, (cells) float64
  Tensor image;                  ///< mean over the folds, middle channel, (npix, npix) float32, Jy/arcsec^2

  /// Chi^2 per real number of the held-out data, sum chi^2 / (2 sum samples): 1 for a perfect model and right weights.
  double score() const;
};

/// What a cross-validation found.
struct Scan {
  std::vector<SearchAxis> axes;   ///< the weights that were searched
  std::vector<ScanPoint> points;  ///< in the order in which they were tried
  std::size_t chosen = 0;         ///< the point of least score
  std::string folds_kind;         ///< Folds::kind()
  std::int64_t fits = 0;          ///< taken in this run, without those of an interrupted one before
  double seconds = 0;             ///< the same
  bool exhausted = false;         ///< a compass ended because its points were used up
  bool interrupted = false;       ///< nothing is chosen

  const ScanPoint& best() const { return points.at(chosen); }  ///< the chosen point
  /// lambda of an axis at a point.
  double lambda(std::size_t point, std::size_t axis) const { return points.at(point).c.at(axis) * axes.at(axis).unit; }
  /// Names of the searched terms whose chosen c is the least or the largest that the search could reach.
  std::vector<std::string> at_bound() const;
  /// Whether held-out cells cannot tell a point from the best one: their difference of W |V - M|^2, summed over cells, is at most
  /// its own standard deviation. Paired over cells, because what they have in common cancels there.
  bool is_as_good(std::size_t point) const;
  /// Whether that is so of all points, three or more: it matters little which is taken.
  bool is_flat() const;

  /// One row for each point and fold: c and lambda of each axis, the fold with its score and FoldScore, and 1 where the point is
  /// as good as the chosen one, else 0.
  struct Table {
    std::vector<std::string> names;         ///< of the columns
    std::vector<std::vector<double>> rows;  ///< the numbers, one for each column
  };
  Table table() const;  ///< of all points, in the order in which they were tried

  /// Chooses the point of least score. (The usual rule of one standard error, the strongest weights that are as good, is worse by
  /// up to half where images have converged and noise is white: docs/lambda.md has the measurements.)
  /// @throws ValueError for no points; DivergedError when none has a finite score
  void choose();
};

}  // namespace mpol
