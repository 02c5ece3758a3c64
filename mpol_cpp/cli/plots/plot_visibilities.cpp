#include <mpol_cpp/cli/plots/plot_visibilities.h>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/cli/options/suggestion.h>
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
    const auto suggestion = suggest_grid(summarise_uv(visibilities.baselines()));
    coords = GridCoords(options.data.cell_size.value_or(suggestion.cell_size), options.data.npix.value_or(suggestion.npix));
  }
  check_grid_holds(visibilities, options.data, coords);
  return coords;
}

plot::Renderer draw_residuals(const Visibilities& visibilities, const PlotOptions& options) {
  const auto residuals = cell_residuals(plot_grid(options, visibilities), visibilities);
  const auto statistics = residual_statistics(residuals);
  auto title = options.title;
  if (title.empty() && statistics.samples > 0) {
    title = fmt::format("σ looks {:.3g} times what the weights say, {:.2g} % beyond 4 σ", statistics.sigma_factor,
                        100 * statistics.beyond_four);
  }
  return plot::write_residual_figure(options.output.out, residual_histogram(residuals), title, options.render());
}

plot::Renderer draw_split(const Visibilities& visibilities, const PlotOptions& options) {
  const auto coords = plot_grid(options, visibilities);
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  plot::SplitFigureOptions figure;
  figure.title = options.title;
  figure.render = options.render();
  const auto seed = static_cast<std::uint64_t>(options.seed);
  if (options.split == "random") {
    const RandomCellSplit split(dataset, RandomCellSplitOptions().folds(options.folds).seed(seed));
    return plot::write_split_figure(options.output.out, split, dataset, figure);
  }
  figure.dartboard = Dartboard(coords);
  const DartboardSplit split(dataset, DartboardSplitOptions().folds(options.folds).seed(seed));
  return plot::write_split_figure(options.output.out, split, dataset, figure);
}

}  // namespace

plot::Renderer draw_visibilities(const PlotInput& input, PlotOptions& options) {
  options.data.data = input.file;
  const auto visibilities = read_visibilities(options.data);
  const auto& out = options.output.out;
  switch (input.kind) {
    case PlotKind::uv:
      return plot::write_coverage_figure(out, visibilities.baselines(), options.title, options.render());
    case PlotKind::residuals:
      return draw_residuals(visibilities, options);
    case PlotKind::split:
      return draw_split(visibilities, options);
    default:
      break;
  }
  plot::VisibilityFigureOptions figure;
  figure.title = options.title;
  figure.bins = options.bins;
  figure.render = options.render();
  return plot::write_visibility_figure(out, visibilities, figure);
}

}  // namespace mpol::cli
