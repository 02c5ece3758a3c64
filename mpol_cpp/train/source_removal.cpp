#include <mpol_cpp/train/source_removal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/analysis/field/wide_image.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol {
namespace {

constexpr std::int64_t small_field = 512;
constexpr double edge = 0.1;  // of the field's width, which flux keeps away from
constexpr double margin = 1.5, fringes = 5, recovered_scale = 0.6;

}  // namespace

SourceField source_field(const GridCoords& coords, const Visibilities& visibilities) {
  const auto uv = summarize_uv(visibilities.baselines());
  if (!(uv.shortest > 0)) return {0, 0, coords};
  const auto flux = square_of_flux(wide_map(look_around(coords, visibilities, uv), visibilities));
  const double field = coords.cell_size() * static_cast<double>(coords.npix());
  const double reach = std::max(std::abs(flux.east), std::abs(flux.north)) + flux.half_width;
  if (2 * reach < (1 - edge) * field && coords.npix() <= small_field) return {0, 0, coords};
  const double cell_size = std::max(coords.cell_size(), 1 / (fringes * uv.longest * units::arcsec));
  const double width = std::max(recovered_scale / (uv.shortest * units::arcsec), 2 * margin * flux.half_width);
  return {flux.east, flux.north, GridCoords(cell_size, pixels_for(width, cell_size))};
}

Visibilities without_source(const Visibilities& visibilities, const SourceField& field, const UsualImageOptions& options) {
  const auto centered = with_center(visibilities, field.east, field.north);
  const auto channels = ChannelMap::cube(visibilities.nchan());
  const auto sky = usual_image(field.coords, centered, channels, options);
  return losses::residual_visibilities(field.coords, sky, centered, channels);
}

}  // namespace mpol
