#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace mpol::cli {

/// The file of a channel's fits of simulated data in a run that keeps them.
std::string name_of_samples(std::int64_t channel, std::int64_t nchan);

/// The images of a run of `mpol image` or `mpol crossval` that other verbs measure.
struct RunImages {
  std::filesystem::path image;  ///< Jy/pixel
  std::filesystem::path dirty;  ///< its header names the beams

  /// Fits of simulated data of a channel; a path without a file where the run has kept none.
  std::filesystem::path samples(std::int64_t channel, std::int64_t nchan) const;
};

/// Those of a run's folder; none where it is no folder, or one of other things.
/// @throws DataError for a run whose images are files of a channel each
std::optional<RunImages> run_images(const std::filesystem::path& folder);

}  // namespace mpol::cli
