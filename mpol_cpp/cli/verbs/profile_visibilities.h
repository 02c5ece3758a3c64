#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/output/output_folder.h>

namespace mpol::cli {

/// How `mpol profile` averages visibilities.
struct VisibilityProfileOptions {
  DataOptions data;                               ///< channels and units
  std::optional<double> bin_width, max_baseline;  ///< kilo-wavelengths
  bool face_on = false;
};

void declare(OptionSet& options, VisibilityProfileOptions& profile);
/// The options that say nothing about an image.
std::vector<std::string> visibility_option_names();
/// @param file  with the visibilities  @throws UsageError
void settle(VisibilityProfileOptions& profile, const std::filesystem::path& file);

/// Real and imaginary part against deprojected baseline length: profile.csv, profile.png, summary.json. Ends the verb.
/// @return the exit code  @throws mpol::Error when the visibilities cannot be read or no baseline is in a bin
int profile_visibilities(const VisibilityProfileOptions& options, const GeometryOptions& geometry, const OutputOptions& output,
                         OutputFolder& folder);

}  // namespace mpol::cli
