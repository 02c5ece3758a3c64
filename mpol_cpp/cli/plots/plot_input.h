#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include <mpol_cpp/cli/program/choices.h>

namespace mpol::cli {

/// What `mpol plot` can draw.
enum class PlotKind { image, comparison, visibilities, uv, residuals, split, training, profile };

/// Its choices; nothing is what suits the input.
inline constexpr auto plot_kind_choices =
    std::to_array<NamedChoice<std::optional<PlotKind>>>({{"auto", std::nullopt},
                                                         {"image", PlotKind::image},
                                                         {"comparison", PlotKind::comparison},
                                                         {"visibilities", PlotKind::visibilities},
                                                         {"uv", PlotKind::uv},
                                                         {"residuals", PlotKind::residuals},
                                                         {"split", PlotKind::split},
                                                         {"training", PlotKind::training},
                                                         {"profile", PlotKind::profile}});
/// The word of a kind.
std::string name_of(std::optional<PlotKind> kind);

/// The files that a figure is drawn from.
struct PlotInput {
  PlotKind kind = PlotKind::image;
  std::filesystem::path file;
  std::filesystem::path second;  ///< of a comparison
};

/// Finds out what to draw from what is given: one image, two images, visibilities, a table, or the folder of an earlier
/// run, of which the most telling file is taken.
/// @param kind    that is asked for; nothing: what suits the input
/// @param second  of a comparison; else empty
/// @throws UsageError when the kind does not suit the number of files, or the kind of a file cannot be told; FileError
///         when a file is not there
PlotInput plot_input(std::optional<PlotKind> kind, const std::filesystem::path& first, const std::filesystem::path& second);

}  // namespace mpol::cli
