#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/cli/program/option_set.h>

namespace mpol::cli {

/// Which FITS image a verb works on.
struct ImageFileOptions {
  std::filesystem::path image;
  std::filesystem::path positional_image;  ///< IMAGE on the command line; wins over `image`
  std::optional<std::int64_t> threads;
};

/// How a disc lies on the sky, as the command line says it: degrees and arcsec.
struct GeometryOptions {
  double inclination = 0, position_angle = 0, offset_east = 0, offset_north = 0;

  DiscGeometry geometry() const;
};

void declare(OptionSet& options, ImageFileOptions& image);
void declare(OptionSet& options, GeometryOptions& geometry);

/// After parsing: the image is named, and its path does not depend on the working directory. @throws UsageError
void settle(ImageFileOptions& image);

}  // namespace mpol::cli
