#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/cli/plots/plot_input.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::cli {

/// How the values of images become colors.
enum class ColorChoice {
  automatic,  ///< symmetric where negative values reach half as far as positive ones, else linear
  linear,     ///< evenly
  power,      ///< by a power of their share of the range
  asinh,      ///< linearly where they are small, by their logarithm beyond
  symmetric   ///< evenly to both sides of zero
};

/// How the cells of a split are shared among folds.
enum class CellSharing { dartboard, random };

/// What `mpol plot` draws, and how.
struct PlotOptions {
  std::filesystem::path input;
  PlotInput found;               ///< what the input turned out to be
  std::filesystem::path second;  ///< of a comparison; else empty
  OutputOptions output;          ///< `out` is the PNG file
  DataOptions data;              ///< channels, units and grid for visibilities
  std::optional<PlotKind> kind;  ///< nothing: what suits the input
  std::string title;
  ColorChoice norm = ColorChoice::automatic;
  double gamma = 0.5;
  double softening = 0.02;
  std::optional<double> lower, upper;
  std::optional<double> half_width;  ///< arcsec
  bool no_beam = false;
  std::int64_t bins = 40;
  CellSharing split = CellSharing::dartboard;
  std::int64_t folds = 5;
  std::int64_t seed = 0;

  plot::ColorNorm color_norm() const;
};

void declare(OptionSet& options, PlotOptions& plot);

/// After parsing: there is something to draw, the figure has a name that may be used. @throws UsageError, FileError
void settle(PlotOptions& options);

}  // namespace mpol::cli
