#include <mpol_cpp/cli/options/polar_grid.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::cli {
namespace {

constexpr std::int64_t most_polar_bins = 10'000'000;
constexpr std::int64_t usual_nphi = 360;

}  // namespace

void declare(OptionSet& options, PolarGridOptions& polar) {
  declare(options, polar.geometry);
  options.integer("--nr", polar.nr, Range::between(1, most_polar_bins), "Bins in radius; default: as wide as a pixel",
                  Record::result);
  options.integer("--nphi", polar.nphi, Range::between(1, most_polar_bins), "Bins in azimuth, once around; default: 360",
                  Record::result);
  options.number("--radius", polar.radius, Range::positive(), "ARCSEC", "Largest radius; default: half the image",
                 Record::result);
}

PolarGrid chosen_grid(const PolarGridOptions& options, const GridCoords& coords) {
  const double radius = options.radius.value_or(0.5 * coords.cell_size() * static_cast<double>(coords.npix()));
  const double farthest = farthest_radius(coords, options.geometry.geometry());
  if (radius > farthest) {
    throw UsageError(error_text("--radius", fmt::format("{}\"", radius),
                                fmt::format("the image reaches as far as {:.6g}\" in the plane of the disc", farthest),
                                "choose a smaller one"));
  }
  const auto wide = std::max<std::int64_t>(1, std::llround(radius / coords.cell_size()));
  const PolarGrid grid{options.nr.value_or(wide), options.nphi.value_or(usual_nphi), radius};
  if (grid.nr > most_polar_bins / grid.nphi) {
    throw UsageError(error_text("--nphi", fmt::format("{}", grid.nphi),
                                fmt::format("makes {} x {} bins, more than {}", grid.nr, grid.nphi, most_polar_bins),
                                "ask for fewer"));
  }
  return grid;
}

PolarIntegrator integrator_of(const PolarGridOptions& options, const PolarGrid& grid, const GridCoords& coords) {
  return {coords, PolarIntegratorOptions()
                      .radii(even_edges(0, grid.radius, grid.nr))
                      .azimuths(even_edges(0, 2 * units::pi, grid.nphi))
                      .geometry(options.geometry.geometry())};
}

nlohmann::ordered_json grid_summary(const PolarGridOptions& options, const PolarGrid& grid) {
  const auto& geometry = options.geometry;
  return {{"inclination_deg", geometry.inclination},
          {"position_angle_deg", geometry.position_angle},
          {"offset_east_arcsec", geometry.offset_east},
          {"offset_north_arcsec", geometry.offset_north},
          {"nr", grid.nr},
          {"nphi", grid.nphi},
          {"radius_arcsec", grid.radius}};
}

}  // namespace mpol::cli
