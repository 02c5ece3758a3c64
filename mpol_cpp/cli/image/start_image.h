#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include <mpol_cpp/cli/options/sky_file.h>
#include <mpol_cpp/models/base_cube.h>

namespace mpol::cli {

struct FitData;

/// Where a fit starts, as `--start` says it.
struct StartAuto {};  ///< scaled to the data: see auto_start
struct StartBase {
  double value;
};  ///< base:V, every base pixel
struct StartFlat {
  double intensity;
};                     ///< flat:JY_PER_ARCSEC2, every image pixel, > 0
struct StartDirty {};  ///< the dirty image, floored at 1e-3 of its peak
struct StartFile {
  std::filesystem::path path;
};  ///< a FITS image or cube, regridded to the run's coordinates
using Start = std::variant<StartAuto, StartBase, StartFlat, StartDirty, StartFile>;

/// @throws UsageError for what is none of the forms
Start parse_start(const std::string& text);

/// Model options with a pixel mapping, through whose inverse their base pixels make the start image; those of base:V make the
/// image that softplus makes of V.
/// @param target   what a file is regridded to
/// @param data     what `auto` and `dirty` are made from
/// @throws mpol::Error when the file cannot be read
BaseCubeOptions start_options(const Start& start, const SkyTarget& target, torch::Dtype dtype, const FitData& data,
                              const PixelMapping& mapping);

/// The base pixels whose image is `sky`, floored at a fraction of the peak of each channel so that every pixel has one.
/// @param sky  (nchan, npix, npix), any unit; @return float64, same shape
/// @throws DataError when a channel has no positive pixel
Tensor base_of_image(const Tensor& sky, double floor, const PixelMapping& mapping);

}  // namespace mpol::cli
