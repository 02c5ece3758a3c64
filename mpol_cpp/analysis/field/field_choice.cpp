#include <mpol_cpp/analysis/field/field_choice.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <mpol_cpp/analysis/field/confined_flux.h>
#include <mpol_cpp/analysis/field/wide_image.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol {
namespace {

constexpr std::int64_t pixels_of_look = 256;
constexpr double margin = 1.5;
constexpr double recovered_part = 0.6;   // of a fringe of the shortest baseline; the rule of the ALMA technical handbook
constexpr double worthwhile_gain = 1.5;  // in width, for which a field leaves the phase centre

double frequency_of(const DataOutline& data) { return data.frequencies.defined() ? data.frequencies.min().item<double>() : 0; }

/// The scale that a shortest baseline recovers, arcsec.
double recovered_scale(double shortest) { return recovered_part / (shortest * units::arcsec); }

/// Baselines between antennas of one station, where there are any, in words.
std::string short_of_array(const UvSummary& uv) {
  if (!(uv.shortest_of_array > uv.shortest)) return {};
  return fmt::format("; without the few baselines far below {:.3g} lambda, which see the whole flux of any field",
                     uv.shortest_of_array);
}

FieldChoice field_of_shortest(const UvSummary& uv) {
  return {2 / (uv.shortest_of_array * units::arcsec), "twice the scale of the shortest baseline" + short_of_array(uv)};
}

/// What a dirty image of the widest field says of the field that is needed.
struct Look {
  FieldChoice widest;
  double recovered;            ///< scale that the shortest baseline of the array sees, arcsec
  std::optional<double> size;  ///< of the flux, arcsec, where it stands out so far that it is no larger than it looks
  std::string left_out;        ///< which baselines say nothing of the field, in words; empty: all do
};

/// @param half_width  of the square about all of the flux
Look look_at(const WideMap& map, double half_width, const FieldChoice& widest, const UvSummary& uv) {
  constexpr double clear_signal = 50;
  const bool is_clear = half_width > 0 && map.image.abs().max().item<double>() > clear_signal * map.noise;
  return {.widest = widest,
          .recovered = recovered_scale(uv.shortest_of_array),
          .size = is_clear ? std::optional(2 * half_width) : std::nullopt,
          .left_out = short_of_array(uv)};
}

/// The field about a place. @param flux  width about it within which there is flux, arcsec
/// @param offset  of the flux' middle from it, arcsec
FieldChoice field_for(double flux, double offset, const Look& look) {
  constexpr double compact = 6;  // beside what large scales may hide
  const double of_size = look.size ? compact * *look.size + 2 * offset : look.recovered;
  const double of_scales = std::min(look.recovered, of_size), of_flux = margin * flux;
  if (std::max(of_scales, of_flux) >= look.widest.width) return look.widest;
  if (of_flux > of_scales) {
    return {of_flux, fmt::format("1.5 times the {:.3g}\" within which the dirty image holds flux (looked at over {:.3g}\": {})",
                                 flux, look.widest.width, look.widest.reason)};
  }
  const auto reason =
      of_size < look.recovered
          ? fmt::format(
                "six times the {:.3g}\" within which the dirty image holds all that stands far out of its noise; the "
                "shortest baseline sees scales of up to {:.3g}\"",
                *look.size, look.recovered)
          : fmt::format("the scales that the shortest baseline recovers; the flux of the dirty image lies within {:.3g}\"", flux);
  return {of_scales, reason + look.left_out};
}

/// A look at a field, and how far the flux reaches that it shows.
struct LookedAt {
  FieldChoice field;
  WideMap map;
  FluxSquare square;
  double about_center, about_flux;  ///< half the width, arcsec, of the squares about the phase centre and the flux that hold it

  double half_width() const { return std::min(about_center, about_flux); }
  bool holds_flux() const { return margin * half_width() < field.width / 2; }
};

LookedAt look_over(FieldChoice field, const FieldView& view) {
  const GridCoords coords(field.width / static_cast<double>(pixels_of_look), pixels_of_look);
  auto map = view.look(coords);
  const auto square = square_of_flux(map);
  const double about_center = confining_half_width(map, 0, 0, extent_of_flux(map));
  const double about_flux = confining_half_width(map, square.east, square.north, square.half_width);
  return {std::move(field), std::move(map), square, about_center, about_flux};
}

/// A look at the widest field: where no beam bounds that, and flux fills it, up to eight times as wide, as far as one holds it.
LookedAt look_at_widest(const FieldView& view) {
  constexpr double first = 4, most = 16;  // times the scale of the shortest baseline
  const auto& uv = view.uv;
  auto look = look_over(widest_field(view.data, uv), view);
  if (!(look.map.noise > 0)) look = look_over(field_of_shortest(uv), view);  // all baselines are too long for such pixels
  if (known_beam(view.data, uv)) return look;
  for (double wider = first; !look.holds_flux() && wider <= most; wider *= 2) {
    auto next = look_over({wider / (uv.shortest_of_array * units::arcsec),
                           fmt::format("{:g} times the scale of the shortest baseline", wider) + short_of_array(uv)},
                          view);
    if (next.map.noise > 0 && next.holds_flux()) return next;
  }
  return look;
}

}  // namespace

std::optional<KnownBeam> known_beam(const DataOutline& data, const UvSummary& uv) {
  const double frequency = frequency_of(data);
  if (!(frequency > 0)) return std::nullopt;
  const double shortest = uv.shortest * units::speed_of_light / frequency;
  const auto beam = PrimaryBeam::of_telescope(data.observation.telescope, shortest);
  if (!beam) return std::nullopt;
  return KnownBeam{*beam, frequency};
}

FieldChoice widest_field(const DataOutline& data, const UvSummary& uv) {
  constexpr double least_power = 0.1;
  if (const auto known = known_beam(data, uv)) {
    const double fwhm = known->beam.fwhm(known->frequency);
    return {2 * known->beam.radius(least_power, known->frequency),
            fmt::format("the primary beam of {:.3g}\" of {}, to a tenth", fwhm, known->beam.words())};
  }
  if (!(uv.shortest > 0)) return {};
  return field_of_shortest(uv);
}

GridCoords look_around(const GridCoords& coords, const DataOutline& data, const UvSummary& uv) {
  const double field = coords.cell_size() * static_cast<double>(coords.npix());
  return {std::max(2 * field, widest_field(data, uv).width) / static_cast<double>(pixels_of_look), pixels_of_look};
}

FieldView view_of(const Visibilities& visibilities, const UvSummary& uv) {
  return {visibilities, uv, [&visibilities](const GridCoords& coords) { return wide_map(coords, visibilities); }};
}

FieldChoice choose_field(const Visibilities& visibilities, const UvSummary& uv, FieldPlace place) {
  return choose_field(view_of(visibilities, uv), place);
}

FieldChoice choose_field(const FieldView& view, FieldPlace place) {
  const auto& uv = view.uv;
  if (!(uv.shortest > 0)) return widest_field(view.data, uv);
  const auto seen = look_at_widest(view);
  const auto& square = seen.square;
  const auto look = look_at(seen.map, seen.half_width(), seen.field, uv);
  auto choice = field_for(2 * seen.about_center, std::max(std::abs(square.east), std::abs(square.north)), look);
  if (place == FieldPlace::phase_center) return choice;
  auto moved = field_for(2 * seen.about_flux, 0, look);
  if (!(moved.width < choice.width / worthwhile_gain)) return choice;
  moved.center = {square.east, square.north};
  moved.center_reason = fmt::format("the flux lies about {} of the phase centre: a field around it is {:.1f} times narrower",
                                    offset_text(moved.center), choice.width / moved.width);
  return moved;
}

std::string field_warning(const Visibilities& visibilities, const UvSummary& uv, const GridCoords& coords) {
  constexpr double far = 0.8;
  if (!(uv.shortest > 0)) return {};
  const double field = coords.cell_size() * static_cast<double>(coords.npix()), scale = recovered_scale(uv.shortest_of_array);
  if (field >= scale || field >= far * choose_field(visibilities, uv).width) return {};
  return fmt::format(
      "the field of {:.3g}\" is smaller than the scales of up to {:.3g}\" that the shortest baseline, {:.4g} lambda, sees: what "
      "lies outside cannot be fitted; --npix {} holds them",
      field, scale, uv.shortest_of_array, transform_size(scale / coords.cell_size()));
}

}  // namespace mpol
