#pragma once

#include <filesystem>
#include <string>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/plot/figure.h>

namespace mpol::plot {

/// Draws the histogram of normalised residuals beside the unit Gaussian, on a linear and on a logarithmic axis.
/// @throws FileError when the file cannot be written
Renderer write_residual_figure(const std::filesystem::path& path, const ResidualHistogram& histogram,
                               const std::string& title = "", const RenderOptions& options = {});

}  // namespace mpol::plot
