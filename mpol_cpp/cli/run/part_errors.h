#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/run/part_fit.h>
#include <mpol_cpp/images/beam.h>
#include <mpol_cpp/uncertainty/error_maps.h>
#include <mpol_cpp/uncertainty/fit_noise.h>

namespace mpol::cli {

/// The errors of channels that were fitted apart from others of their cube.
struct PartErrors {
  ErrorMaps maps;               ///< of the channels
  std::vector<FitNoise> noise;  ///< by which they were sampled, of each channel
};

/// Samples the errors of a fitted part: as many as are asked for, or usual ones. The ranks of the part, which no term may join,
/// do so each by itself.
/// @param beams  of all channels of the cube; empty: at the resolution of pixels
/// @return       on the first rank the errors of the channels of all; elsewhere nothing is in them
PartErrors errors_of_part(const ImageOptions& options, const PartToFit& part, const FittedPart& fitted,
                          const std::vector<Beam>& beams);

/// Writes the errors of a group of channels into the folder of its state, for a run that is interrupted in a later one.
void keep_errors(const std::filesystem::path& state, PartErrors errors, const ImageOptions& options, std::int64_t epochs);
/// What they were; nothing where the folder has none of so many samples of a fit of so many epochs, and, with a warning, where
/// the file is damaged.
std::optional<PartErrors> kept_errors(const std::filesystem::path& state, const ImageOptions& options, std::int64_t epochs);

/// The errors of a cube, put together part by part.
class CubeErrors {
 public:
  explicit CubeErrors(std::int64_t nchan) : nchan_(nchan) {}

  /// @param first  of the part's channels
  void add(PartErrors part, std::int64_t first);
  /// How much larger the noise is than the weights say, over all channels.
  FitNoise noise() const { return pooled_noise(noise_); }
  /// All of them, once each channel has its own.
  MappedErrors mapped(const ImageOptions& options) &&;

 private:
  std::int64_t nchan_;
  ErrorMaps maps_;
  std::vector<FitNoise> noise_;
};

}  // namespace mpol::cli
