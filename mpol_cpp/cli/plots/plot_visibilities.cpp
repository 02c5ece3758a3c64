#include <mpol_cpp/cli/plots/plot_visibilities.h>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/datasets/cell_split.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/plot/figures/coverage_figure.h>
#include <mpol_cpp/plot/figures/residual_figure.h>
#include <mpol_cpp/plot/figures/split_figure.h>
#include <mpol_cpp/plot/figures/visibility_figure.h>

namespace mpol::cli {
namespace {

/// The grid of the options, completed by what suits the data.
GridCoords plot_grid(const PlotOptions& options, const Visibilities& visibilities) {
  auto coords = GridCoords(1, 2);
  if (options.data.cell_size && options.data.npix) {
    coords = GridCoords(*options.data.cell_size, *options.data.npix);
  } else {
    coords = choose_grid(visibilities, options.data.cell_size, options.data.npix, SkyOffset()).coords;
  }
  check_grid_holds(visibilities, options.data, coords);
  return coords;
}

plot::Page page_of_residuals(const Visibilities& visibilities, const PlotOptions& options) {
  const auto residuals = cell_residuals(plot_grid(options, visibilities), visibilities);
  const auto statistics = residual_statistics(residuals);
  auto title = options.title;
  if (title.empty() && statistics.samples > 0) {
    title = fmt::format("σ looks {:.3g} times what the weights say, {:.2g} % beyond 4 σ", statistics.sigma_factor,
                        100 * statistics.beyond_four);
  }
  return plot::residual_page(residual_histogram(residuals), title);
}

plot::Page page_of_split(const Visibilities& visibilities, const PlotOptions& options) {
  const auto coords = plot_grid(options, visibilities);
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  plot::SplitFigureOptions figure;
  figure.title = options.title;
  const auto seed = static_cast<std::uint64_t>(options.seed);
  if (options.split == CellSharing::random) {
    const RandomCellSplit split(dataset, RandomCellSplitOptions().folds(options.folds).seed(seed));
    return plot::split_page(split, dataset, figure);
  }
  figure.dartboard = Dartboard(coords);
  const DartboardSplit split(dataset, DartboardSplitOptions().folds(options.folds).seed(seed));
  return plot::split_page(split, dataset, figure);
}

}  // namespace

plot::Page page_of_visibilities(const PlotInput& input, PlotOptions& options) {
  options.data.data = input.file;
  const auto visibilities = read_visibilities(options.data);
  switch (input.kind) {
    case PlotKind::uv:
      return plot::coverage_page(visibilities.baselines(), options.title);
    case PlotKind::residuals:
      return page_of_residuals(visibilities, options);
    case PlotKind::split:
      return page_of_split(visibilities, options);
    default:
      break;
  }
  plot::VisibilityFigureOptions figure;
  figure.title = options.title;
  figure.bins = options.bins;
  return plot::visibility_page(visibilities, figure);
}

}  // namespace mpol::cli
