#include <mpol_cpp/cli/options/grid_choice.h>

#include <algorithm>
#include <cmath>
#include <memory>
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

/// As if all of it had been given.
void put(DataOptions& options, const GridCoords& coords, const SkyOffset& center) {
  options.cell_size = coords.cell_size();
  options.npix = coords.npix();
  options.center = center;
}

/// All data in one place.
class WholeData final : public GridData {
 public:
  explicit WholeData(Visibilities visibilities)
      : visibilities_(std::move(visibilities)), uv_(summarize_uv(visibilities_.baselines())) {}

  FieldView view() const override { return view_of(visibilities_, uv_); }
  void turn(const SkyOffset& center) override { visibilities_ = turned(std::move(visibilities_), center); }
  std::optional<Visibilities> take() override { return std::move(visibilities_); }

 private:
  Visibilities visibilities_;
  UvSummary uv_;
};

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

Visibilities turned(Visibilities visibilities, const SkyOffset& center) {
  if (center == SkyOffset()) return visibilities;
  const auto room = room_beside(visibilities, static_cast<double>(visibilities.data().nbytes()));
  return with_center(visibilities, center.east, center.north, room);
}

bool is_given(const DataOptions& options) { return options.cell_size && options.npix; }

ChosenGrid choose_grid(DataOptions& options) {
  return choose_grid(options, [&options] { return std::make_unique<WholeData>(read_visibilities(options)); });
}

ChosenGrid choose_grid(DataOptions& options, const std::function<std::unique_ptr<GridData>()>& read) {
  if (is_given(options)) {
    options.center = in_whole_cells(options.center.value_or(SkyOffset()), *options.cell_size);
    return {GridCoords(*options.cell_size, *options.npix), {}, std::nullopt, *options.center};
  }
  const auto data = read();
  const auto uv = data->view().uv;
  if (!(std::max(uv.max_abs_u, uv.max_abs_v) > 0)) {
    throw DataError(error_text("--cell-size", "not given", "all baselines have length zero, from which no grid follows",
                               "give --cell-size and --npix"));
  }
  if (options.center) {
    options.center = in_whole_cells(*options.center, options.cell_size ? *options.cell_size : suggested_cell_size(uv));
    data->turn(*options.center);
  }
  const auto chosen = choose_grid(data->view(), options.cell_size, options.npix, options.center);
  if (!options.center) data->turn(chosen.center);
  put(options, chosen.coords, chosen.center);
  return {chosen.coords, choices_of(chosen), data->take(), chosen.center, uv};
}

}  // namespace mpol::cli
