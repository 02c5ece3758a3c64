#pragma once

#include <filesystem>
#include <string>

#include <mpol_cpp/plot/figure.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol::plot {

/// Where the uv plane was sampled: both Hermitian halves of the baselines of all channels, in kilo-wavelengths, evenly
/// thinned out to what a panel can show.
CurvePanel coverage_panel(const Baselines& baselines);

/// Draws the uv coverage. @throws FileError when the file cannot be written
Renderer write_coverage_figure(const std::filesystem::path& path, const Baselines& baselines, const std::string& title = "",
                               const RenderOptions& options = {});

}  // namespace mpol::plot
