#include <mpol_cpp/cli/image/error_sampling.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <mpol_cpp/analysis/length_slope.h>
#include <mpol_cpp/cli/image/noise_choice.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/plot/figures/error_figure.h>

namespace mpol::cli {
namespace {

constexpr double tolerance_of_noise = 5e-3, tolerance_of_samples = 2e-2;  // measured: errors of 5e-3 are the same
constexpr std::int64_t most_iterations_of_samples = 2000, fewest_iterations = 24;

DirtyNoise noise_of(const FitData& data, NoiseDraws draws) {
  if (draws == NoiseDraws::of_cells || data.imaging == Imaging::cells) return DirtyNoise(data.dataset);
  return {data.coords(), data.visibilities, data.channels};
}

BootstrapOptions options_of_fits(const ImageOptions& options, double tolerance) {
  BootstrapOptions how;
  how.seed(static_cast<std::uint64_t>(options.seed))
      .tolerance(std::max(tolerance, options.tolerance.value_or(0)))
      .most_iterations(most_iterations_of_samples)
      .on_sample([](std::int64_t) { stop_if_requested(); });
  return how;
}

}  // namespace

FitNoise measured_noise(const ImageOptions& options, const FitData& data, const GriddedNet& model, const Objective& objective,
                        double reduced_chi_squared, std::optional<SharedErrors> shared, NoiseDraws draws, Communicator* ranks) {
  const auto unit = noise_unit(data.coords(), data.visibilities, data.channels.nchan(), objective.normalizer());
  const bool looks = shared && !options.likelihood_kind().of_cells;  // averages of cells leave what they lose as well
  const auto own = looks ? std::function([&data, draws] { return noise_of(data, draws); }) : std::function<DirtyNoise()>();
  const auto noise = measure_fit_noise(model.ptr(), objective, unit, reduced_chi_squared, own,
                                       shared.value_or(SharedErrors::once), options_of_fits(options, tolerance_of_noise));
  if (noise.factor() <= largest_sigma || options.likelihood_kind().of_cells) return noise;
  const auto lengths = length_slope(data.coords(), model.ptr()->make_sky(), data.visibilities, data.channels, ranks);
  return lengths && lengths->tells_sharp_source() ? noise.without_misfit() : noise;
}

SampledErrors sample_errors(const ImageOptions& options, const FitData& data, GriddedNet model, const Objective& objective,
                            double noise_factor) {
  const auto samples = options.samples.value();
  if (const auto why = Bootstrap::obstacle(*model, objective); !why.empty()) {
    throw UsageError(error_text("--samples", fmt::format("{}", samples), "errors are sampled of convex fits alone: " + why,
                                "leave --samples out"));
  }
  const auto how =
      options_of_fits(options, tolerance_of_samples).samples(samples).refits(refits_of(samples)).noise_factor(noise_factor);
  return {Bootstrap(model.ptr(), objective, how).sample(noise_of(data, NoiseDraws::of_samples)), noise_factor};
}

SampledErrors usual_errors(const ImageOptions& options, const FitData& data, const GriddedNet& model, const Objective& objective,
                           double noise_factor, std::int64_t epochs) {
  const auto how = options_of_fits(options, tolerance_of_samples)
                       .samples(usual_samples)
                       .refits(refits_of(usual_samples))
                       .noise_factor(noise_factor)
                       .most_iterations(std::max(epochs, fewest_iterations));
  return {Bootstrap(model.ptr(), objective, how).sample(noise_of(data, NoiseDraws::of_cells)), noise_factor, true};
}

ErrorSummary summary_of(const SampledErrors& errors, const ErrorMaps& maps) {
  return {.samples = errors.samples.images.size(0),
          .noise_factor = errors.noise_factor,
          .flux_error = maps.flux_error,
          .flux_bias = maps.flux_bias,
          .correlation_length = maps.correlation_length,
          .error_factor = maps.error_factor,
          .share_below_error = maps.share_below_error};
}

std::vector<ErrorFile> error_files(const ErrorMaps& maps, std::int64_t samples, bool is_usual) {
  const auto of = [samples](const char* words) {
    return fmt::format("{} of {} fits to simulated data of the image (parametric bootstrap)", words, samples);
  };
  const ErrorFile error{"error.fits", maps.error,
                        of("error: root mean square difference from the image, times error_factor of summary.json")};
  if (is_usual) return {error};
  return {error,
          {"std.fits", maps.spread, of("std: standard deviation")},
          {"mean.fits", maps.mean, of("mean: mean")},
          {"lower.fits", maps.lower, of("lower: 16th percentile")},
          {"upper.fits", maps.upper, of("upper: 84th percentile")}};
}

plot::Page error_page(const ErrorMaps& maps, const GridCoords& coords, const std::vector<Beam>& beams) {
  plot::ErrorFigure figure(coords);
  figure.image = maps.image;
  figure.error = maps.error;
  figure.signal_to_noise = maps.signal_to_noise();
  if (!beams.empty()) figure.beam = beams[beams.size() / 2];
  return plot::error_page(figure);
}

}  // namespace mpol::cli
