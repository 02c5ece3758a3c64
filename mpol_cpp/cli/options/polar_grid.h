#pragma once

#include <cstdint>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol::cli {

/// Bins of radius and azimuth of a disc, as the command line asks for them.
struct PolarGridOptions {
  GeometryOptions geometry;
  std::optional<std::int64_t> nr, nphi;
  std::optional<double> radius;  ///< arcsec
};

void declare(OptionSet& options, PolarGridOptions& polar);

/// Even bins from the middle of a disc to a radius, once around.
struct PolarGrid {
  std::int64_t nr, nphi;
  double radius;  ///< arcsec
};

/// What is asked for; of what is not: the image's half width, bins as wide as a pixel, and one a degree.
/// @throws UsageError where the image does not reach so far, or for too many bins
PolarGrid chosen_grid(const PolarGridOptions& options, const GridCoords& coords);

/// What integrates images over these bins.
PolarIntegrator integrator_of(const PolarGridOptions& options, const PolarGrid& grid, const GridCoords& coords);

/// What summary.json says of them: geometry in degrees and arcsec, numbers of bins, radius in arcsec.
nlohmann::ordered_json grid_summary(const PolarGridOptions& options, const PolarGrid& grid);

}  // namespace mpol::cli
