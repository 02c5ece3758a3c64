#pragma once

#include <array>
#include <optional>
#include <string>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/cli/program/choices.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/gridding/cells/scatter.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// The choices of --scatter-check.
inline constexpr auto scatter_check_choices = std::to_array<NamedChoice<ScatterCheck>>(
    {{"warn", ScatterCheck::warn}, {"error", ScatterCheck::error}, {"off", ScatterCheck::off}});

/// How data scatter in units of sigma once their source is taken out by a fit (without_source), from 2^18 of the samples at most,
/// so that the memory does not grow with the data. Nothing where the source needs more than 2^18 pixels, counted over channels,
/// or cannot be fitted.
std::optional<ResidualStatistics> statistics_without_source(const GridCoords& coords, const Visibilities& visibilities);

/// What is to be said of the weights of data that scatter more in their uv cells than these promise. A source that is bright or
/// far from the phase centre changes within a cell, and does the same: it is taken out first, if that is possible.
/// @return  empty when the scatter is acceptable, or explained by the source
std::string weights_warning(const Scatter& scatter, const GridCoords& coords, const Visibilities& visibilities);

}  // namespace mpol::cli
