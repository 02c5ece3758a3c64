#include <mpol_cpp/analysis/field/grid_choice.h>

#include <cmath>
#include <utility>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol {
namespace {

constexpr const char* no_lengths = "all baselines have length zero";

std::string reason_of_pixels(const FieldChoice& field, double width) {
  if (!(field.width > 0)) return no_lengths;
  auto reason = fmt::format("a field of {:.3g}\" for {:.3g}\": {}", width, field.width, field.reason);
  if (width < field.width) reason += "; more pixels than these are taken where they are asked for alone";
  return reason;
}

}  // namespace

GridChoice choose_grid(const Visibilities& visibilities, std::optional<double> cell_size, std::optional<std::int64_t> npix,
                       std::optional<SkyOffset> center) {
  return choose_grid(view_of(visibilities, summarize_uv(visibilities.baselines())), cell_size, npix, center);
}

GridChoice choose_grid(const FieldView& view, std::optional<double> cell_size, std::optional<std::int64_t> npix,
                       std::optional<SkyOffset> center) {
  const auto& uv = view.uv;
  if (cell_size) static_cast<void>(GridCoords(*cell_size, 2));  // refuses it before anything is divided by it
  std::string cell_size_reason, npix_reason, center_reason;
  if (!cell_size) {
    const bool any_length = uv.longest > 0;
    cell_size = any_length ? suggested_cell_size(uv) : 1;
    cell_size_reason = any_length
                           ? fmt::format("five pixels across the finest fringe of {:.3g}\"", 1 / (uv.longest * units::arcsec))
                           : no_lengths;
  }
  if (!npix) {
    const auto field = choose_field(view, center ? FieldPlace::phase_center : FieldPlace::around_flux);
    if (!center) center = in_whole_cells(field.center, *cell_size);
    center_reason = field.center_reason;
    npix = pixels_for(field.width, *cell_size);
    npix_reason = reason_of_pixels(field, static_cast<double>(*npix) * *cell_size);
  }
  return {GridCoords(*cell_size, *npix), center.value_or(SkyOffset()), std::move(cell_size_reason), std::move(npix_reason),
          std::move(center_reason)};
}

SkyOffset in_whole_cells(const SkyOffset& offset, double cell_size) {
  return {std::round(offset.east / cell_size) * cell_size, std::round(offset.north / cell_size) * cell_size};
}

}  // namespace mpol
