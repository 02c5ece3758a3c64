#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <mpol_cpp/crossval/folds.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/likelihoods/likelihood.h>

namespace mpol {

/// What a fold of a cross-validation trains on and is tested by; no sample is in both.
struct FoldData {
  /// Likelihoods of the samples that a fold is fitted to, and of those that it holds out.
  std::shared_ptr<Likelihood> train, test;
  GriddedDataset train_cells{nullptr}, test_cells{nullptr};  ///< cell averages of the same, float64, on the CPU
  /// How much noise `train` has more than `test`, in standard deviations: of the second set of white_noise_data() alone.
  double perturbation = 0;
};

/// Makes a likelihood of some of the samples. @param cells  their averages, float64, on the CPU
using LikelihoodMaker = std::function<std::shared_ptr<Likelihood>(const Visibilities& samples, const GriddedDataset& cells)>;

/// The data of each fold, with likelihoods of any kind.
/// @param visibilities  whose channels are those of the image (for a continuum image join_samples first)
/// @throws ShapeError when the folds are of other samples
std::vector<FoldData> fold_data(const GridCoords& coords, const Visibilities& visibilities, const Folds& folds,
                                const LikelihoodMaker& make);

/// The same with exact likelihoods: each sample is transformed once, whatever the number of folds, as what a fold trains on is
/// the sum over the others' tests.
std::vector<FoldData> exact_fold_data(const GridCoords& coords, const Visibilities& visibilities, const Folds& folds);

}  // namespace mpol
