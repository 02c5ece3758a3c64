#pragma once

#include <cstdint>
#include <string>

#include <torch/arg.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Options of all Folds but one's own.
struct FoldOptions {
  /// How many folds samples are dealt to, >= 2.
  TORCH_ARG(std::int64_t, folds) = 5;
  /// Seed of the order in which cells, bins or blocks are dealt: the same seed gives the same folds.
  TORCH_ARG(std::uint64_t, seed) = 0;
  /// This part of the occupied cells, those of largest weight, trains in every fold (random_cells): at least one.
  TORCH_ARG(double, always_train) = 0.01;
};

/// Samples dealt to k folds: each is held out in one of them, or in none (it then trains in all). A sample goes with all its
/// channels. Errors that neighbours share leak from training into testing where both lie in one uv cell: so whole cells are
/// held out, with the Hermitian partner's.
class Folds {
 public:
  /// Whole uv cells at random. Of several channels at frequencies of their own the middle one decides on the cell.
  /// @throws ValueError for options out of range; DataError for fewer cells than folds
  static Folds random_cells(const GridCoords& coords, const Visibilities& visibilities, const FoldOptions& options = {});
  /// Whole bins of a dartboard of 8 rings up to the longest baseline and 8 sectors: tests on baselines far from those that a
  /// model has seen. The innermost ring, which holds the flux, trains in every fold.
  static Folds dartboard(const GridCoords& coords, const Visibilities& visibilities, const FoldOptions& options = {});
  /// Whole blocks of samples: observations, spectral windows, stretches of time.
  /// @param labels  (nvis) int64, the same for samples of a block
  static Folds blocks(const Tensor& labels, const FoldOptions& options = {});
  /// One's own. @param of_sample  (nvis) int64: the fold in which a sample is held out, or -1
  /// @throws ValueError for fewer than two folds, or a fold that is not there; DataError for a fold without samples, or
  ///         without samples to train on
  static Folds custom(Tensor of_sample, std::int64_t folds);

  std::int64_t size() const { return folds_; }  ///< k
  /// "random cells", "dartboard", "blocks" or "custom".
  const std::string& kind() const { return kind_; }
  const Tensor& of_sample() const { return sample_folds_; }  ///< (nvis) int64 on the CPU
  /// Indices of the samples of a fold, (n) int64, increasing. @throws ValueError for a fold that is not there
  Tensor test_samples(std::int64_t fold) const;
  /// Indices of all other samples, which train in that fold, likewise.
  Tensor train_samples(std::int64_t fold) const;

 private:
  Folds(Tensor of_sample, std::int64_t folds, std::string kind);
  void check(std::int64_t fold) const;

  Tensor sample_folds_;
  std::int64_t folds_;
  std::string kind_;
};

}  // namespace mpol
