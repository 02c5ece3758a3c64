#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/options/sky_file.h>

namespace mpol::cli {

/// A structure that --test-structure marks: a circle on the sky, or the pixels of a FITS mask.
struct StructureRegion {
  struct Circle {
    double east, north, radius;  ///< arcsec, from the phase centre
  };
  std::optional<Circle> circle;
  std::filesystem::path mask;  ///< where there is no circle

  std::string text() const;  ///< as the option takes it
  std::string name() const;  ///< for people: a mask without its folders

  /// The marked pixels, (npix, npix) bool, or (nchan, npix, npix) of a mask of channels.
  /// @throws mpol::Error when the mask cannot be read, and when no pixel is marked, or every one
  Tensor pixels(const SkyTarget& target) const;
};

/// Several of them, separated by ";": "circle:EAST,NORTH,RADIUS" in arcsec, or FILE.fits, whose path is made absolute.
/// @throws UsageError
std::vector<StructureRegion> parse_structures(const std::string& text);
/// The text that gives them again.
std::string structures_text(const std::vector<StructureRegion>& regions);

}  // namespace mpol::cli
