#pragma once

#include <filesystem>

#include <mpol_cpp/cli/plots/plot_options.h>
#include <mpol_cpp/plot/figure.h>

namespace mpol::cli {

// Figures from the tables that other verbs write. @throws FileError, DataError for a table that is not of the kind

/// Losses and learning rate of history.csv, with the image.fits beside it where there is one.
plot::Renderer draw_training(const std::filesystem::path& file, const PlotOptions& options);
/// A profile.csv of an image or of visibilities.
plot::Renderer draw_profile(const std::filesystem::path& file, const PlotOptions& options);
/// The histogram.csv of `mpol weights`.
plot::Renderer draw_histogram(const std::filesystem::path& file, const PlotOptions& options);

}  // namespace mpol::cli
