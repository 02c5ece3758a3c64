#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include <mpol_cpp/analysis/dirty_products.h>
#include <mpol_cpp/cli/options/sky_file.h>
#include <mpol_cpp/models/base_cube.h>

namespace mpol::cli {

/// Where a fit starts, as `--start` says it.
struct StartAuto {};  ///< scaled to the data: see auto_start
struct StartBase {
  double value;
  std::string number;  ///< the value as it was given
};                     ///< base:V, every base pixel
struct StartFlat {
  double intensity;
  std::string number;  ///< the intensity as it was given
};                     ///< flat:JY_PER_ARCSEC2, every image pixel, > 0
struct StartDirty {};  ///< the dirty image, floored at 1e-3 of its peak
struct StartFile {
  std::filesystem::path path;
};  ///< a FITS image or cube, regridded to the run's coordinates
using Start = std::variant<StartAuto, StartBase, StartFlat, StartDirty, StartFile>;

/// @throws UsageError for what is none of the forms
Start parse_start(const std::string& text);
/// The text that gives it again.
std::string text_of(const Start& start);

/// Model options with a pixel mapping, through whose inverse their base pixels make the start image; those of base:V make the
/// image that softplus makes of V.
/// @param target   what a file is regridded to
/// @param data     what `auto` and `dirty` are made from
/// @throws mpol::Error when the file cannot be read
BaseCubeOptions start_options(const Start& start, const SkyTarget& target, torch::Dtype dtype, const FitData& data,
                              const PixelMapping& mapping);

}  // namespace mpol::cli
