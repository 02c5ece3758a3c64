#include <mpol_cpp/cli/options/grid_choice.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/number_lists.h>
#include <mpol_cpp/cli/options/sample_room.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol::cli {
namespace {

/// The data about another place of the sky; as they are about their own.
Visibilities turned(Visibilities visibilities, const SkyOffset& center) {
  if (center == SkyOffset()) return visibilities;
  const auto room = room_beside(visibilities, static_cast<double>(visibilities.data().nbytes()));
  return with_center(visibilities, center.east, center.north, room);
}

/// As if all of it had been given.
void put(DataOptions& options, const GridCoords& coords, const SkyOffset& center) {
  options.cell_size = coords.cell_size();
  options.npix = coords.npix();
  options.center = center;
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

Visibilities ChosenGrid::read_share(const DataOptions& options, const VisibilityShare& share) const {
  return turned(cli::read_share(options, share), center);
}

ChosenGrid chosen_elsewhere(DataOptions& options, const GridCoords& coords, const SkyOffset& center) {
  put(options, coords, center);
  return {coords, {}, std::nullopt, center};
}

std::vector<Choice> choices_of(const GridChoice& chosen) {
  std::vector<Choice> choices;
  const auto add = [&](const char* name, std::string value, const std::string& reason) {
    if (!reason.empty()) choices.push_back({name, std::move(value), reason});
  };
  add("cell-size", fmt::format("{}", chosen.coords.cell_size()), chosen.cell_size_reason);
  add("center", offset_value(chosen.center), chosen.center_reason);
  add("npix", fmt::format("{}", chosen.coords.npix()), chosen.npix_reason);
  return choices;
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
    const auto chosen = choose_grid(visibilities, options.cell_size, options.npix);
    put(options, chosen.coords, chosen.center);
    return {chosen.coords, choices_of(chosen), turned(std::move(visibilities), chosen.center), chosen.center};
  }
  const double cell_size = options.cell_size ? *options.cell_size : suggested_cell_size(summarize_uv(visibilities.baselines()));
  const auto center = in_whole_cells(*options.center, cell_size);
  visibilities = turned(std::move(visibilities), center);
  const auto chosen = choose_grid(visibilities, options.cell_size, options.npix, center);
  put(options, chosen.coords, chosen.center);
  return {chosen.coords, choices_of(chosen), std::move(visibilities), center};
}

}  // namespace mpol::cli
