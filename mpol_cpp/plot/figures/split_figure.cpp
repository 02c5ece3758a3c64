#include <mpol_cpp/plot/figures/split_figure.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

/// The cells of one channel: where they lie, kilo-wavelengths, and in which fold they are held out.
struct SplitCells {
  std::vector<double> u, v;
  std::vector<std::int64_t> fold;

  double q(std::size_t i) const { return std::hypot(u[i], v[i]); }
};

SplitCells cells_of(const CellSplit& split, const GriddedDataset& dataset, std::int64_t channel) {
  const auto& coords = dataset->coords();
  if (channel < 0 || channel >= dataset->nchan())
    throw ValueError(fmt::format("split of channel {}: there are {}", channel, dataset->nchan()));
  if (split.held_out_in().size(0) != dataset->ncells())
    throw ShapeError(fmt::format("split of {} cells for a dataset of {}", split.held_out_in().size(0), dataset->ncells()));
  const auto plane = coords.npix() * coords.npix();
  const auto all = dataset->cells().to(torch::kCPU);
  const auto begin = (all < channel * plane).sum().item<std::int64_t>();
  const auto end = (all < (channel + 1) * plane).sum().item<std::int64_t>();
  const auto cells = all.slice(0, begin, end).remainder(plane);
  const auto fold = split.held_out_in().slice(0, begin, end).contiguous();
  const auto kilo = [&cells](const Tensor& values) { return to_vector(values.flatten().index_select(0, cells) / 1e3); };
  return {kilo(coords.packed_u()),
          kilo(coords.packed_v()),
          {fold.const_data_ptr<std::int64_t>(), fold.const_data_ptr<std::int64_t>() + fold.numel()}};
}

/// Rings and sectors of a dartboard that lie within the reach of the cells.
void add_dartboard(CurvePanel& panel, const Dartboard& dartboard, double reach) {
  for (const double edge : dartboard.q_edges()) {
    const double radius = edge / 1e3;
    if (!(radius > 0) || radius > 1.08 * reach) continue;
    Curve ring{"", CurveStyle::guide, {}, {}};
    constexpr int steps = 120;
    for (int i = 0; i <= steps; ++i) {
      ring.x.push_back(radius * std::cos(2 * units::pi * i / steps));
      ring.y.push_back(radius * std::sin(2 * units::pi * i / steps));
    }
    panel.curves.push_back(std::move(ring));
  }
  for (const double edge : dartboard.phi_edges()) {
    const double x = 1.08 * reach * std::cos(edge), y = 1.08 * reach * std::sin(edge);
    panel.curves.push_back({"", CurveStyle::guide, {-x, x}, {-y, y}});
  }
}

CurvePanel fold_panel(const SplitCells& cells, std::int64_t fold, double reach, const SplitFigureOptions& options) {
  CurvePanel panel;
  panel.title = fmt::format("fold {}", fold);
  panel.x_label = "u (kλ)";
  panel.y_label = "v (kλ)";
  panel.equal_axes = true;
  if (options.dartboard) add_dartboard(panel, *options.dartboard, reach);
  Curve train{"train", CurveStyle::points, {}, {}}, test{"test", CurveStyle::points, {}, {}};
  for (std::size_t i = 0; i < cells.fold.size(); ++i) {
    auto& curve = cells.fold[i] == fold ? test : train;
    curve.x.insert(curve.x.end(), {cells.u[i], -cells.u[i]});
    curve.y.insert(curve.y.end(), {cells.v[i], -cells.v[i]});
  }
  panel.curves.push_back(std::move(train));
  panel.curves.push_back(std::move(test));
  return panel;
}

CurvePanel held_out_panel(const SplitCells& cells, std::int64_t folds, double reach) {
  constexpr std::size_t bins = 24;
  CurvePanel panel;
  panel.title = "held out";
  panel.x_label = "baseline (kλ)";
  panel.y_label = "cells per ring";
  std::vector<double> middle;
  middle.reserve(bins);
  for (std::size_t bin = 0; bin < bins; ++bin) middle.push_back(reach * (static_cast<double>(bin) + 0.5) / bins);
  for (std::int64_t fold = 0; fold < folds; ++fold) {
    std::vector<double> counts(bins);
    for (std::size_t i = 0; i < cells.fold.size(); ++i) {
      if (cells.fold[i] != fold) continue;
      counts[std::min(static_cast<std::size_t>(cells.q(i) / reach * bins), bins - 1)] += 1;
    }
    panel.curves.push_back({fmt::format("fold {}", fold), CurveStyle::steps, middle, counts});
  }
  return panel;
}

}  // namespace

Page split_page(const CellSplit& split, const GriddedDataset& dataset, const SplitFigureOptions& options) {
  const auto cells = cells_of(split, dataset, options.channel);
  double reach = 1e-3;
  for (std::size_t i = 0; i < cells.fold.size(); ++i) reach = std::max(reach, cells.q(i));
  const auto folds = std::min(split.size(), options.max_folds);
  Page page{.title = options.title, .columns = 3, .panels = {}, .panel_width = 560, .panel_height = 540};
  for (std::int64_t fold = 0; fold < folds; ++fold) page.panels.emplace_back(fold_panel(cells, fold, reach, options));
  page.panels.emplace_back(held_out_panel(cells, folds, reach));
  return page;
}

}  // namespace mpol::plot
