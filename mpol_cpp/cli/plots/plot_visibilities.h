#pragma once

#include <mpol_cpp/cli/plots/plot_input.h>
#include <mpol_cpp/cli/plots/plot_options.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::cli {

/// Figures from visibilities: coverage, amplitude and phase; coverage alone; residuals from cell averages; a split.
/// @throws mpol::Error when they cannot be read or do not fit the grid
plot::Page page_of_visibilities(const PlotInput& input, PlotOptions& options);

}  // namespace mpol::cli
