#include <mpol_cpp/analysis/field/field_choice.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <mpol_cpp/analysis/field/wide_image.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol {
namespace {

constexpr std::int64_t pixels_of_look = 256;
constexpr double to_tenth_of_beam = 1.8;  // full width at a tenth of a Gaussian, in FWHM
constexpr double margin = 1.5;
constexpr double worthwhile_gain = 1.5;  // in width, for which a field leaves the phase centre

// Antennas of one size; the longer names first, of which others are the beginning.
constexpr std::array<std::pair<const char*, double>, 14> dishes = {{{"ALMA", 12},
                                                                    {"EVLA", 25},
                                                                    {"JVLA", 25},
                                                                    {"VLA", 25},
                                                                    {"NOEMA", 15},
                                                                    {"IRAM_PDB", 15},
                                                                    {"IRAM PDB", 15},
                                                                    {"SMA", 6},
                                                                    {"ATCA", 22},
                                                                    {"MEERKAT", 13.5},
                                                                    {"ASKAP", 12},
                                                                    {"GMRT", 45},
                                                                    {"UGMRT", 45},
                                                                    {"WSRT", 25}}};

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

std::optional<double> dish_diameter(const std::string& telescope, double shortest) {
  std::string name = telescope;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto* known = std::find_if(dishes.begin(), dishes.end(), [&](const auto& dish) { return name == dish.first; });
  if (known == dishes.end()) return std::nullopt;
  return name == "ALMA" && shortest > 0 && shortest < 12 ? 7 : known->second;
}

FieldChoice widest_field(const Visibilities& visibilities, const UvSummary& uv) {
  const double frequency = frequency_of(visibilities);
  if (frequency > 0) {
    const double wavelength = units::speed_of_light / frequency;
    if (const auto diameter = dish_diameter(visibilities.observation().telescope, uv.shortest * wavelength)) {
      const double beam = 1.13 * wavelength / *diameter / units::arcsec;
      return {to_tenth_of_beam * beam, fmt::format("the primary beam of {:.3g}\" of {} m antennas, to a tenth", beam, *diameter)};
    }
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
