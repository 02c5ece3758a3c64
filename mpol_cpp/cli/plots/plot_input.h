#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mpol::cli {

/// What `mpol plot` can draw.
enum class PlotKind { image, comparison, visibilities, uv, residuals, split, training, profile };

/// Names of the kinds on the command line, in the order of the enumeration.
const std::vector<std::string>& plot_kind_names();
/// @param name  one of them
PlotKind plot_kind_of(const std::string& name);

/// The files that a figure is drawn from.
struct PlotInput {
  PlotKind kind = PlotKind::image;
  std::filesystem::path file;
  std::filesystem::path second;  ///< of a comparison
};

/// Finds out what to draw from what is given: one image, two images, visibilities, a table, or the folder of an earlier
/// run, of which the most telling file is taken.
/// @param kind    one of the names, or "auto"
/// @param second  of a comparison; else empty
/// @throws UsageError when the kind does not suit the number of files, or the kind of a file cannot be told; FileError
///         when a file is not there
PlotInput plot_input(const std::string& kind, const std::filesystem::path& first, const std::filesystem::path& second);

}  // namespace mpol::cli
