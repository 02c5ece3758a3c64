#pragma once

#include <cstdint>
#include <optional>

#include <torch/arg.h>

#include <mpol_cpp/datasets/dartboard.h>
#include <mpol_cpp/datasets/gridded_dataset.h>

namespace mpol {

/// One fold of a cross-validation: `test` is held out while a model is trained on `train`.
struct Fold {
  GriddedDataset train, test;  ///< on the device of the dataset
};

/// A dataset cut in k folds. In each fold train and test are disjoint and together the whole dataset; every cell is
/// held out in exactly one fold, or in none: those are in every train set.
class CellSplit {
 public:
  std::int64_t size() const { return folds_; }  ///< k
  /// Fold in which a cell is held out, (ncells) int64 on the CPU, in the order of the dataset; -1: in none.
  const Tensor& held_out_in() const { return held_out_in_; }
  /// True where a cell is in the test set of a fold, (ncells) bool on the CPU.
  /// @throws ValueError for a fold that is not there
  Tensor test_cells(std::int64_t fold) const;
  /// The two sets of a fold, on the device of the dataset.
  Fold operator[](std::int64_t fold) const;

 protected:
  /// A split into so many folds that holds out nothing yet: a derived class says with hold_out() which cells.
  CellSplit(GriddedDataset dataset, std::int64_t folds);
  const GriddedDataset& dataset() const { return dataset_; }  ///< what is split
  /// Says which cells each fold holds out. @param held_out_in  (ncells) int64 on the CPU, as held_out_in() gives it
  void hold_out(Tensor held_out_in) { held_out_in_ = std::move(held_out_in); }

 private:
  GriddedDataset dataset_;
  std::int64_t folds_;
  Tensor held_out_in_;
};

/// Options of a RandomCellSplit.
struct RandomCellSplitOptions {
  /// How many folds the cells are dealt to, >= 2.
  TORCH_ARG(std::int64_t, folds) = 5;
  /// Seed of the order in which cells are dealt: the same seed gives the same folds.
  TORCH_ARG(std::uint64_t, seed) = 0;
  /// This part of all cells, those of largest weight, is in every train set: at least one, never all.
  TORCH_ARG(double, always_train) = 0.01;
};

/// Folds of single cells drawn at random, in every channel for itself; the folds' sizes differ by one at most.
/// The same for the same seed on every machine.
class RandomCellSplit : public CellSplit {
 public:
  /// @throws ValueError for fewer than two folds, or always_train outside [0, 1); DataError for fewer cells than that
  explicit RandomCellSplit(GriddedDataset dataset, RandomCellSplitOptions options = {});
};

/// Options of a DartboardSplit.
struct DartboardSplitOptions {
  /// How many folds the occupied bins are dealt to, >= 2.
  TORCH_ARG(std::int64_t, folds) = 5;
  /// Seed of the order in which bins are dealt: the same seed gives the same folds.
  TORCH_ARG(std::uint64_t, seed) = 0;
  /// Empty: the default dartboard of the dataset's coordinates.
  TORCH_ARG(std::optional<Dartboard>, dartboard) = std::nullopt;
};

/// Folds of whole dartboard bins, shared by all channels: tests how a model predicts visibilities at baselines that it
/// has not seen. The occupied ring of smallest q, which holds the flux, is in every train set.
/// The same for the same seed on every machine.
class DartboardSplit : public CellSplit {
 public:
  /// @throws ValueError for fewer than two folds; ShapeError when the dartboard has another grid; DataError when it does
  ///         not reach the outermost cell, or has fewer occupied bins than folds
  explicit DartboardSplit(GriddedDataset dataset, DartboardSplitOptions options = {});
};

}  // namespace mpol
