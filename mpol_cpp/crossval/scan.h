#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// By what points of a search are compared. All estimate the same: chi^2 per real number of data that a fit has not seen, 1 for a
/// perfect model and right weights.
enum class Score {
  folds,  ///< chi^2/2N of held-out data, pooled over folds
  /// (chi^2 + 2 df)/2N of a fit to all data: Stein's unbiased risk estimate for white noise of the variance that the weights say,
  /// Mallows' C_p. Source: Stein 1981; df as in white_noise_data().
  sure,
  /// (chi^2/2N)/(1 - df/2N)^2: generalized cross-validation, for white noise whose variance is the weights' but for one factor.
  /// Source: Golub, Heath & Wahba 1979.
  gcv,
};
std::string to_string(Score score);  ///< "folds", "sure" or "gcv"

/// How a fold did at some weights.
struct FoldScore {
  double chi_squared = 0, samples = 0;  ///< of its held-out data
  std::int64_t epochs = 0;              ///< of the fit
  double flux = 0;                      ///< of its image, all channels, Jy
  std::int64_t nonzero = 0;             ///< pixels above 1e-4 of its peak, all channels
  double train = 0;                     ///< chi^2 per real number of the data that it was fitted to
  double penalty = 0;                   ///< sum of unit * R over the searched terms, of its image
};

/// All folds at some weights; for scores of white noise one "fold", the fit to all data, which is compared with the same.
struct ScanPoint {
  std::vector<double> c;          ///< of each axis
  std::vector<FoldScore> folds;   ///< how each did, in their order
  Tensor cells;                   ///< W |V - M|^2 of the held-out cells of all folds, (cells) float64
  Tensor image;                   ///< mean over the folds, middle channel, (npix, npix) float32, Jy/arcsec^2
  Score kind = Score::folds;      ///< what score() is
  double degrees_of_freedom = 0;  ///< of the fit to all data, for scores of white noise

  /// With folds sum chi^2 / (2 sum samples) of the held-out data; otherwise as Score says.
  double score() const;
  /// Chi^2 per real number of the data that were fitted, mean over the folds.
  double train() const;
  /// FoldScore::penalty, mean over the folds.
  double penalty() const;
};

/// What a cross-validation found.
struct Scan {
  std::vector<SearchAxis> axes;    ///< the weights that were searched
  std::vector<ScanPoint> points;   ///< in the order in which they were tried
  std::size_t chosen = 0;          ///< the point of least score
  std::string folds_kind;          ///< Folds::kind(); "white noise" without folds
  std::int64_t fits = 0;           ///< taken in this run, without those of an interrupted one before
  double seconds = 0;              ///< the same
  std::int64_t folds_at_once = 1;  ///< fitted as one batch
  bool exhausted = false;          ///< a compass ended because its points were used up
  bool interrupted = false;        ///< nothing is chosen

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

  /// The point that the discrepancy principle takes (Morozov 1966): the one whose chi^2/2N of the fitted data is nearest to 1. A
  /// diagnostic: it trusts the weights entirely, and takes no account of what a fit spends on noise. Nothing where no point has
  /// one.
  std::optional<std::size_t> discrepancy() const;
  /// The corner of the L-curve of misfit against penalty: the least product of both (Reginska 1996). A diagnostic: it leans to
  /// too smooth images, more so the better the data. Nothing where no point has a penalty, or fewer than three.
  std::optional<std::size_t> l_curve_corner() const;

  /// One row for each point and fold: c and lambda of each axis, the fold with its score (without folds the point's) and
  /// FoldScore, 1 where the point is as good as the chosen one, else 0, and without folds the degrees of freedom.
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
