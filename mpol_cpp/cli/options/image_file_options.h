#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <torch/types.h>

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

/// Where a verb works on images, and in which precision.
struct ImageComputing {
  std::string device = "auto";
  torch::Dtype dtype = torch::kFloat64;
};

/// Declares --inclination, --position-angle, --offset-east and --offset-north.
/// @param angle  and the others: numbers, or ones that need not be given
/// @param words  of the inclination's help
template <typename Number>
void declare_geometry(OptionSet& options, Number& inclination, Number& angle, Number& east, Number& north,
                      const std::string& words) {
  options.number("--inclination", inclination, Range::between(0, 89), "DEG", words, Record::result);
  options.number("--position-angle", angle, Range::any(), "DEG", "Of its major axis, North through East", Record::result);
  options.number("--offset-east", east, Range::any(), "ARCSEC", "Of its centre from the phase centre", Record::result);
  options.number("--offset-north", north, Range::any(), "ARCSEC", "Of its centre from the phase centre", Record::result);
}

void declare(OptionSet& options, ImageFileOptions& image);
void declare(OptionSet& options, ImageComputing& computing);
void declare(OptionSet& options, GeometryOptions& geometry);

/// After parsing: the image is named, and its path does not depend on the working directory. @throws UsageError
void settle(ImageFileOptions& image);

}  // namespace mpol::cli
