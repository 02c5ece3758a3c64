#pragma once

#include <filesystem>

#include <mpol_cpp/cli/plots/plot_options.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::cli {

// Figures from the tables that other verbs write. @throws FileError, DataError for a table that is not of the kind

/// Losses and learning rate of history.csv, with the image.fits beside it where there is one.
plot::Page page_of_training(const std::filesystem::path& file, const PlotOptions& options);
/// A profile.csv of an image or of visibilities.
plot::Page page_of_profile(const std::filesystem::path& file, const PlotOptions& options);
/// The histogram.csv of `mpol weights`.
plot::Page page_of_histogram(const std::filesystem::path& file, const PlotOptions& options);

}  // namespace mpol::cli
