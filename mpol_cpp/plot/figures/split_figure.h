#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <mpol_cpp/datasets/cell_split.h>
#include <mpol_cpp/plot/figure.h>

namespace mpol::plot {

struct SplitFigureOptions {
  std::string title;
  std::int64_t channel = 0;
  std::int64_t max_folds = 5;          ///< only the first folds are drawn
  std::optional<Dartboard> dartboard;  ///< its rings and sectors are drawn into the uv plane
  RenderOptions render;
};

/// Draws which uv cells of a channel each fold trains on and which it holds out, both Hermitian halves, and how many cells
/// of every baseline length each fold holds out.
/// @param dataset  that was split
/// @throws ValueError for a channel that is not there; ShapeError for another dataset; FileError when the file cannot be
///         written
Renderer write_split_figure(const std::filesystem::path& path, const CellSplit& split, const GriddedDataset& dataset,
                            const SplitFigureOptions& options = {});

}  // namespace mpol::plot
