#pragma once

#include <optional>
#include <string>

#include <mpol_cpp/datasets/cell_split.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// How the figure of a split looks.
struct SplitFigureOptions {
  std::string title;                   ///< of the page; empty: none
  std::int64_t channel = 0;            ///< whose cells are drawn, from 0
  std::int64_t max_folds = 5;          ///< only the first folds are drawn
  std::optional<Dartboard> dartboard;  ///< its rings and sectors are drawn into the uv plane
};

/// The page of the uv cells of a channel that each fold trains on and holds out, both Hermitian halves, and how many cells
/// of every baseline length each fold holds out.
/// @param dataset  that was split
/// @throws ValueError for a channel that is not there; ShapeError for another dataset
Page split_page(const CellSplit& split, const GriddedDataset& dataset, const SplitFigureOptions& options = {});

}  // namespace mpol::plot
