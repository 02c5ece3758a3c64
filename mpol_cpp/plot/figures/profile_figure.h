#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/plot/figure.h>

namespace mpol::plot {

/// Draws a radial brightness profile with error bars; of more than seven channels seven evenly spaced ones, which the
/// title says.
/// @param unit          of the brightness
/// @param radius_shown  largest radius of the figure, arcsec; unset: one and a half times that of the outermost ring
///                      above a fiftieth of the peak
/// @throws FileError when the file cannot be written
Renderer write_profile_figure(const std::filesystem::path& path, const BrightnessProfile& profile, const std::string& unit,
                              const std::string& title = "", const RenderOptions& options = {},
                              std::optional<double> radius_shown = std::nullopt);

/// Draws the real and imaginary part of visibilities against deprojected baseline length, with error bars.
Renderer write_profile_figure(const std::filesystem::path& path, const VisibilityProfile& profile, const std::string& title = "",
                              const RenderOptions& options = {});

}  // namespace mpol::plot
