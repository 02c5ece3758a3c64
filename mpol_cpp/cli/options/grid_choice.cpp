#include <mpol_cpp/cli/options/grid_choice.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/field_choice.h>
#include <mpol_cpp/cli/options/number_lists.h>
#include <mpol_cpp/cli/options/sample_room.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol::cli {
namespace {

Choice choose_cell(const UvSummary& uv) {
  if (!(uv.longest > 0)) return {"cell-size", "1", "all baselines have length zero"};
  return {"cell-size", fmt::format("{}", suggested_cell_size(uv)),
          fmt::format("five pixels across the finest fringe of {:.3g}\"", 1 / (uv.longest * units::arcsec))};
}

Choice choose_pixels(const FieldChoice& field, double cell_size) {
  const auto npix = pixels_for(field.width, cell_size);
  const double width = static_cast<double>(npix) * cell_size;
  if (!(field.width > 0)) return {"npix", fmt::format("{}", npix), "all baselines have length zero"};
  auto reason = fmt::format("a field of {:.3g}\" for {:.3g}\": {}", width, field.width, field.reason);
  if (width < field.width) reason += "; more pixels than these are taken by --npix alone";
  return {"npix", fmt::format("{}", npix), reason};
}

/// The data about another place of the sky; as they are about their own.
Visibilities turned(Visibilities visibilities, const SkyOffset& center) {
  if (center == SkyOffset()) return visibilities;
  const auto room = room_beside(visibilities, static_cast<double>(visibilities.data().nbytes()));
  return with_center(visibilities, center.east, center.north, room);
}

/// As if all of it had been given.
void put(DataOptions& options, const GridChoice& chosen) {
  options.cell_size = chosen.coords.cell_size();
  options.npix = chosen.coords.npix();
  options.center = chosen.center;
}

}  // namespace

std::string choice_words(const std::vector<Choice>& choices) {
  std::string text;
  for (const auto& choice : choices) text += fmt::format("chosen      --{} {}: {}\n", choice.name, choice.value, choice.reason);
  return text;
}

nlohmann::ordered_json choices_json(const std::vector<Choice>& choices) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& choice : choices)
    json.push_back({{"option", choice.name}, {"value", choice.value}, {"reason", choice.reason}});
  return json;
}

nlohmann::ordered_json center_json(const SkyOffset& center) {
  const auto rounded = [](double arcsec) { return std::round(arcsec * 1e9) / 1e9; };  // cells times their size, but for rounding
  return {rounded(center.east), rounded(center.north)};
}

Visibilities ChosenGrid::take_visibilities(const DataOptions& options) {
  auto read = visibilities ? std::move(*visibilities) : turned(read_visibilities(options, coords), center);
  visibilities.reset();
  report_smearing(options, coords, center);
  return read;
}

SkyOffset in_whole_cells(const SkyOffset& offset, double cell_size) {
  return {std::round(offset.east / cell_size) * cell_size, std::round(offset.north / cell_size) * cell_size};
}

GridChoice choose_grid(const Visibilities& visibilities, std::optional<double> cell_size, std::optional<std::int64_t> npix,
                       std::optional<SkyOffset> center) {
  const auto uv = summarize_uv(visibilities.baselines());
  std::vector<Choice> choices;
  if (!cell_size) {
    choices.push_back(choose_cell(uv));
    cell_size = number_of<double>(choices.back().value);
  }
  if (!npix) {
    const auto field = choose_field(visibilities, uv, center ? FieldPlace::phase_center : FieldPlace::around_flux);
    if (!center) center = in_whole_cells(field.center, *cell_size);
    if (!field.center_reason.empty()) choices.push_back({"center", offset_value(*center), field.center_reason});
    choices.push_back(choose_pixels(field, *cell_size));
    npix = number_of<std::int64_t>(choices.back().value);
  }
  return {GridCoords(*cell_size, *npix), center.value_or(SkyOffset()), std::move(choices)};
}

ChosenGrid choose_grid(DataOptions& options) {
  if (options.cell_size && options.npix) {
    options.center = in_whole_cells(options.center.value_or(SkyOffset()), *options.cell_size);
    return {GridCoords(*options.cell_size, *options.npix), {}, std::nullopt, *options.center};
  }
  auto visibilities = read_visibilities(options);
  if (!(std::max(visibilities.baselines().max_abs_u(), visibilities.baselines().max_abs_v()) > 0)) {
    throw DataError(error_text("--cell-size", "not given", "all baselines have length zero, from which no grid follows",
                               "give --cell-size and --npix"));
  }
  if (!options.center) {
    auto chosen = choose_grid(visibilities, options.cell_size, options.npix, std::nullopt);
    put(options, chosen);
    return {chosen.coords, std::move(chosen.choices), turned(std::move(visibilities), chosen.center), chosen.center};
  }
  const auto cell_size =
      options.cell_size ? options.cell_size : number_of<double>(choose_cell(summarize_uv(visibilities.baselines())).value);
  const auto center = in_whole_cells(*options.center, *cell_size);
  visibilities = turned(std::move(visibilities), center);
  auto chosen = choose_grid(visibilities, options.cell_size, options.npix, center);
  put(options, chosen);
  return {chosen.coords, std::move(chosen.choices), std::move(visibilities), center};
}

}  // namespace mpol::cli
