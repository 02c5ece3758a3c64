#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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

/// A grid and what was chosen of it.
struct GridChoice {
  GridCoords coords;
  std::vector<Choice> choices;  ///< none where nothing was left to choose
};

/// What is not given of a grid for visibilities: cells of a fifth of the finest fringe (suggested_cell_size), and pixels for the
/// field of choose_field(). Where all baselines have length zero, cells of an arcsecond.
GridChoice choose_grid(const Visibilities& visibilities, std::optional<double> cell_size, std::optional<std::int64_t> npix);

/// The grid of a run, and what was read on the way to it.
struct ChosenGrid {
  GridCoords coords;
  std::vector<Choice> choices;
  std::optional<Visibilities> visibilities;  ///< where something was to be chosen

  /// Those read on the way, or reads them now.
  Visibilities take_visibilities(const DataOptions& options);
};

/// The grid that --cell-size and --npix ask for. What of them is not given is chosen from the data, which are read for it, and
/// put into the options, as if it had been given. @throws DataError where all baselines have length zero
ChosenGrid choose_grid(DataOptions& options);

}  // namespace mpol::cli
