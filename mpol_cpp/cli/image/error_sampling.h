#pragma once

#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/plot/page.h>
#include <mpol_cpp/uncertainty/bootstrap.h>
#include <mpol_cpp/uncertainty/error_maps.h>
#include <mpol_cpp/uncertainty/fit_noise.h>

namespace mpol::cli {

/// How many of the samples are observed and fitted once more.
constexpr std::int64_t refits_of(std::int64_t samples) { return samples / 4; }

/// Samples of a run that asks for none: their squares, averaged over a beam's surroundings, tell an error well enough.
constexpr std::int64_t usual_samples = 4;

/// Whether a run samples errors that nobody asked for, if its fit lets it.
inline bool samples_usual_errors(const ImageOptions& options) {
  return !options.samples && choose_optimizer(options).is_convex();
}

/// What `--samples`, or a run by itself, gives.
struct SampledErrors {
  BootstrapSamples samples;
  double noise_factor = 1;
  bool is_usual = false;  ///< nobody asked for them

  /// Their maps, of usual ones that of the error alone. @param sky, beams  as error_maps() takes them
  ErrorMaps maps(const Tensor& sky, const GridCoords& coords, const std::vector<Beam>& beams) const;
};

/// The errors of all channels as they become files.
struct MappedErrors {
  ErrorMaps maps;
  std::int64_t samples = 0;
  double noise_factor = 1;
  bool is_usual = false;  ///< nobody asked for them
};

/// Which noise of the data samples get: as each sees it, or that of averages of uv cells, which take no pass through the samples.
/// Their variance in the image is the same.
enum class NoiseDraws { of_samples, of_cells };

/// The noise that a fit shows (measure_fit_noise); where pixels are too coarse for the source (LengthSlope), no more than the
/// weights say, nor than chi^2 (FitNoise::without_misfit). A signal ends it as it ends a run that writes.
/// @param reduced_chi_squared  chi^2/(2 N) of the fit over all visibilities
/// @param shared               how far it goes after errors that visibilities share; nothing: they are not looked for
/// @param ranks                that have other channels; empty: these are all
FitNoise measured_noise(const ImageOptions& options, const FitData& data, const GriddedNet& model, const Objective& objective,
                        double reduced_chi_squared, std::optional<SharedErrors> shared, NoiseDraws draws = NoiseDraws::of_samples,
                        Communicator* ranks = nullptr);

/// Fits simulated data of the fitted model: as many as are asked for, or where nobody asked usual_samples, none of which takes
/// more iterations than the fit. A signal ends it as it ends a run that writes.
/// @param noise_factor   by which the noise is larger than the weights say
/// @param epochs         of the fit
/// @param first_channel  of the data in the cube: channels that are sampled apart have noise of their own
/// @throws UsageError where errors are asked for and the fit is not convex
SampledErrors sample_errors(const ImageOptions& options, const FitData& data, GriddedNet model, const Objective& objective,
                            double noise_factor, std::int64_t epochs, std::int64_t first_channel = 0);

ErrorSummary summary_of(const MappedErrors& errors);

/// The maps as files: name, image, and what HISTORY says of it.
struct ErrorFile {
  std::string name;
  Tensor image;
  std::string words;
};
std::vector<ErrorFile> error_files(const MappedErrors& errors);

/// The image with contours where it is 3, 5, 10, 20, … times its error, the error, and signal to noise; of a cube the middle
/// channel.
plot::Page error_page(const ErrorMaps& maps, const GridCoords& coords, const std::vector<Beam>& beams);

}  // namespace mpol::cli
