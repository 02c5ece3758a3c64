#include <mpol_cpp/datasets/cell_split.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/argsort.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/datasets/deal.h>

namespace mpol {

CellSplit::CellSplit(GriddedDataset dataset, std::int64_t folds) : dataset_(std::move(dataset)), folds_(folds) {
  if (folds < 2) throw ValueError(fmt::format("the number of folds is {}; it must be at least 2", folds));
}

Tensor CellSplit::test_cells(std::int64_t fold) const {
  if (fold < 0 || fold >= folds_) throw ValueError(fmt::format("fold {} is not there; there are 0 … {}", fold, folds_ - 1));
  return held_out_in_ == fold;
}

Fold CellSplit::operator[](std::int64_t fold) const {
  const auto test = test_cells(fold);
  return {GriddedDataset(dataset_->subset(test.logical_not())), GriddedDataset(dataset_->subset(test))};
}

RandomCellSplit::RandomCellSplit(GriddedDataset given, RandomCellSplitOptions options)
    : CellSplit(std::move(given), options.folds()) {
  const double part = options.always_train();
  if (!(part >= 0 && part < 1)) {
    throw ValueError(fmt::format("always_train is {}; it is a part of all cells in 0 … 1, below 1", part));
  }
  const auto ncells = dataset()->ncells();
  const auto strongest = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(part * static_cast<double>(ncells))));
  const auto weights = dataset()->weights().detach().to(torch::kCPU, torch::kFloat64);
  const auto by_weight = at::argsort(weights, /*stable=*/true, /*dim=*/0, /*descending=*/true);
  const auto* order = by_weight.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> cells(order + strongest, order + ncells);
  std::sort(cells.begin(), cells.end());
  const auto dealt = deal(ncells - strongest, options.folds(), options.seed(), "cells");

  auto folds = at::full({ncells}, -1, torch::kInt64);
  auto* fold = folds.mutable_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < cells.size(); ++i) fold[cells[i]] = dealt[i];
  hold_out(folds);
}

DartboardSplit::DartboardSplit(GriddedDataset given, DartboardSplitOptions options)
    : CellSplit(std::move(given), options.folds()) {
  const auto board = options.dartboard().value_or(Dartboard(dataset()->coords()));
  const auto occupied = board.histogram(dataset());  // (q_bins, phi_bins)
  const auto bins = board.bins_of(dataset()->cells());
  const auto* bin = bins.const_data_ptr<std::int64_t>();
  const auto ncells = bins.numel();
  if (std::any_of(bin, bin + ncells, [](std::int64_t b) { return b < 0; })) {
    throw DataError(fmt::format("cells lie beyond the last ring of the dartboard at {} wavelengths: give it a larger q edge",
                                board.q_edges().back()));
  }
  std::vector<std::int64_t> splittable;
  const auto* count = occupied.const_data_ptr<std::int64_t>();
  const auto first = std::find_if(count, count + occupied.numel(), [](std::int64_t n) { return n > 0; }) - count;
  const auto next_ring = (first / board.phi_bins() + 1) * board.phi_bins();
  for (std::int64_t b = next_ring; b < occupied.numel(); ++b) {
    if (count[b] > 0) splittable.push_back(b);
  }
  const auto dealt = deal(static_cast<std::int64_t>(splittable.size()), options.folds(), options.seed(), "dartboard bins");
  std::vector<std::int64_t> fold_of_bin(static_cast<std::size_t>(occupied.numel()), -1);
  for (std::size_t i = 0; i < splittable.size(); ++i) fold_of_bin[static_cast<std::size_t>(splittable[i])] = dealt[i];
  auto folds = at::empty({ncells}, torch::kInt64);
  auto* fold = folds.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < ncells; ++i) fold[i] = fold_of_bin[static_cast<std::size_t>(bin[i])];
  hold_out(folds);
}

}  // namespace mpol
