#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <mpol_cpp/analysis/field/grid_choice.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// Something that the program decided because nobody said it.
struct Choice {
  std::string name;   ///< of the option, without its dashes
  std::string value;  ///< as the option would have it
  std::string reason;
};

/// "--cell-size 0.08: five pixels …", one line each.
std::string choice_words(const std::vector<Choice>& choices);
/// [{"option", "value", "reason"}], as summary.json holds them.
nlohmann::ordered_json choices_json(const std::vector<Choice>& choices);

/// [east, north], as summary.json holds an image's place.
nlohmann::ordered_json center_json(const SkyOffset& center);

/// What was chosen of a grid, in the order of choosing: none where nothing was left to choose.
std::vector<Choice> choices_of(const GridChoice& chosen);

/// The grid of a run, and what was read on the way to it.
struct ChosenGrid {
  GridCoords coords;
  std::vector<Choice> choices;
  std::optional<Visibilities> visibilities;  ///< where something was to be chosen: all, or those that this process has
  SkyOffset center = {};                     ///< of the image, to which their phases are turned (with_center)
  std::optional<UvSummary> uv = {};          ///< of all baselines, where something was to be chosen

  /// Those read on the way, or reads them now and turns their phases.
  Visibilities take_visibilities(const DataOptions& options);
  /// Reads a share of them and turns their phases.
  Visibilities read_share(const DataOptions& options, const VisibilityShare& share) const;
};

/// A grid that was chosen elsewhere, put into the options as if it had been given.
ChosenGrid chosen_elsewhere(DataOptions& options, const GridCoords& coords, const SkyOffset& center);

/// The data by which a grid is chosen.
class GridData {
 public:
  GridData() = default;
  GridData(const GridData&) = delete;
  GridData& operator=(const GridData&) = delete;
  virtual ~GridData() = default;

  virtual FieldView view() const = 0;              ///< of all data, about the place that they were turned to
  virtual void turn(const SkyOffset& center) = 0;  ///< turns them about another place than that of their phases, once
  virtual std::optional<Visibilities> take() = 0;  ///< those of them that this process has
};

/// The grid that --cell-size, --npix and --center ask for. What of them is not given is chosen from the data, which are read for
/// it, and put into the options, as if it had been given. @throws DataError where all baselines have length zero
ChosenGrid choose_grid(DataOptions& options);
/// The same by data that are read where they are needed.
ChosenGrid choose_grid(DataOptions& options, const std::function<std::unique_ptr<GridData>()>& read);
/// Whether nothing of it is to be found in the data.
bool is_given(const DataOptions& options);

/// The data about another place of the sky; as they are about their own.
Visibilities turned(Visibilities visibilities, const SkyOffset& center);

}  // namespace mpol::cli
