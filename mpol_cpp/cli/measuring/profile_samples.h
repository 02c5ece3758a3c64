#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/images/beam.h>

namespace mpol::cli {

/// How the profile of an image was made, as that of its samples is to be.
struct ProfileOfImage {
  std::string option;      ///< that named the image, for messages
  GridCoords coords;       ///< of the image
  std::string unit;        ///< as the file has it
  DiscGeometry geometry;   ///< of the disc
  RadialImageOptions how;  ///< rings
};

/// The error of a channel's profile by fits of simulated data of a file (`mpol image --keep-samples`): how their profiles differ
/// from the image's, by the factor and with the growth of its header.
/// @param sky  (1, npix, npix), the channel as in its file  @param channel  its profile
/// @param beams  that image and samples are restored to; none: they are as in their files
/// @return (1, nbins) float64
/// @throws UsageError for a file that does not go with the image
Tensor error_by_samples(const std::filesystem::path& file, const ProfileOfImage& image, const Tensor& sky,
                        const BrightnessProfile& channel, const std::vector<Beam>& beams);

}  // namespace mpol::cli
