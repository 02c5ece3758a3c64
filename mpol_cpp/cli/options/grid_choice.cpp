#include <mpol_cpp/cli/options/grid_choice.h>

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/field_choice.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/core/units.h>

namespace mpol::cli {
namespace {

Choice choose_cell(const UvSummary& uv) {
  if (!(uv.longest > 0)) return {"cell-size", "1", "all baselines have length zero"};
  return {"cell-size", fmt::format("{}", suggested_cell_size(uv)),
          fmt::format("five pixels across the finest fringe of {:.3g}\"", 1 / (uv.longest * units::arcsec))};
}

Choice choose_pixels(const Visibilities& visibilities, const UvSummary& uv, double cell_size) {
  const auto field = choose_field(visibilities, uv);
  const auto npix = pixels_for(field.width, cell_size);
  const double width = static_cast<double>(npix) * cell_size;
  if (!(field.width > 0)) return {"npix", fmt::format("{}", npix), "all baselines have length zero"};
  auto reason = fmt::format("a field of {:.3g}\" for {:.3g}\": {}", width, field.width, field.reason);
  if (width < field.width) reason += "; more pixels than these are taken by --npix alone";
  return {"npix", fmt::format("{}", npix), reason};
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

Visibilities ChosenGrid::take_visibilities(const DataOptions& options) {
  if (!visibilities) return read_visibilities(options, coords);
  auto read = std::move(*visibilities);
  visibilities.reset();
  return read;
}

GridChoice choose_grid(const Visibilities& visibilities, std::optional<double> cell_size, std::optional<std::int64_t> npix) {
  const auto uv = summarise_uv(visibilities.baselines());
  std::vector<Choice> choices;
  if (!cell_size) {
    choices.push_back(choose_cell(uv));
    cell_size = number_of<double>(choices.back().value);
  }
  if (!npix) {
    choices.push_back(choose_pixels(visibilities, uv, *cell_size));
    npix = number_of<std::int64_t>(choices.back().value);
  }
  return {GridCoords(*cell_size, *npix), std::move(choices)};
}

ChosenGrid choose_grid(DataOptions& options) {
  if (options.cell_size && options.npix) return {GridCoords(*options.cell_size, *options.npix), {}, std::nullopt};
  auto visibilities = read_visibilities(options);
  if (!(std::max(visibilities.baselines().max_abs_u(), visibilities.baselines().max_abs_v()) > 0)) {
    throw DataError(error_text("--cell-size", "not given", "all baselines have length zero, from which no grid follows",
                               "give --cell-size and --npix"));
  }
  auto chosen = choose_grid(visibilities, options.cell_size, options.npix);
  options.cell_size = chosen.coords.cell_size();
  options.npix = chosen.coords.npix();
  return {chosen.coords, std::move(chosen.choices), std::move(visibilities)};
}

}  // namespace mpol::cli
