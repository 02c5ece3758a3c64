#include <mpol_cpp/analysis/field/field_choice.h>

#include <algorithm>

#include <mpol_cpp/analysis/field/wide_image.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol {
namespace {

constexpr std::int64_t pixels_of_look = 256;
constexpr double margin = 1.5;
constexpr double worthwhile_gain = 1.5;  // in width, for which a field leaves the phase centre

double frequency_of(const Visibilities& visibilities) {
  return visibilities.frequencies().defined() ? visibilities.frequencies().min().item<double>() : 0;
}

/// The field for flux of such a width, arcsec.
FieldChoice field_for(double flux, double recovered, const FieldChoice& widest) {
  const double wanted = std::max(recovered, margin * flux);
  if (wanted >= widest.width) return widest;
  if (wanted > recovered) {
    return {wanted, fmt::format("1.5 times the {:.3g}\" within which the dirty image holds flux (looked at over {:.3g}\": {})",
                                flux, widest.width, widest.reason)};
  }
  return {wanted,
          fmt::format("the scales that the shortest baseline recovers; the flux of the dirty image lies within {:.3g}\"", flux)};
}

}  // namespace

std::optional<KnownBeam> known_beam(const Visibilities& visibilities, const UvSummary& uv) {
  const double frequency = frequency_of(visibilities);
  if (!(frequency > 0)) return std::nullopt;
  const double shortest = uv.shortest * units::speed_of_light / frequency;
  const auto beam = PrimaryBeam::of_telescope(visibilities.observation().telescope, shortest);
  if (!beam) return std::nullopt;
  return KnownBeam{*beam, frequency};
}

FieldChoice widest_field(const Visibilities& visibilities, const UvSummary& uv) {
  constexpr double least_power = 0.1;
  if (const auto known = known_beam(visibilities, uv)) {
    const double fwhm = known->beam.fwhm(known->frequency);
    return {2 * known->beam.radius(least_power, known->frequency),
            fmt::format("the primary beam of {:.3g}\" of {}, to a tenth", fwhm, known->beam.words())};
  }
  if (!(uv.shortest > 0)) return {};
  return {2 / (uv.shortest * units::arcsec), "twice the scale of the shortest baseline"};
}

GridCoords look_around(const GridCoords& coords, const Visibilities& visibilities, const UvSummary& uv) {
  const double field = coords.cell_size() * static_cast<double>(coords.npix());
  return {std::max(2 * field, widest_field(visibilities, uv).width) / static_cast<double>(pixels_of_look), pixels_of_look};
}

FieldChoice choose_field(const Visibilities& visibilities, const UvSummary& uv, FieldPlace place) {
  const auto widest = widest_field(visibilities, uv);
  if (!(uv.shortest > 0)) return widest;
  const double recovered = 0.6 / (uv.shortest * units::arcsec);
  const GridCoords look(widest.width / static_cast<double>(pixels_of_look), pixels_of_look);
  const auto map = wide_map(look, visibilities);
  auto choice = field_for(2 * extent_of_flux(map), recovered, widest);
  if (place == FieldPlace::phase_center) return choice;
  const auto square = square_of_flux(map);
  auto moved = field_for(2 * square.half_width, recovered, widest);
  if (!(moved.width < choice.width / worthwhile_gain)) return choice;
  moved.center = {square.east, square.north};
  moved.center_reason = fmt::format("the flux lies about {} of the phase centre: a field around it is {:.1f} times narrower",
                                    offset_text(moved.center), choice.width / moved.width);
  return moved;
}

}  // namespace mpol
