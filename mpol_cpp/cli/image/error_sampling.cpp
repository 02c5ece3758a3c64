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
#include <mpol_cpp/uncertainty/flux_seen.h>

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
                            double noise_factor, std::int64_t epochs, std::int64_t first_channel) {
  const bool is_usual = !options.samples;
  const auto samples = options.samples.value_or(usual_samples);
  if (const auto why = Bootstrap::obstacle(*model, objective); !why.empty()) {
    throw UsageError(error_text("--samples", fmt::format("{}", samples), "errors are sampled of convex fits alone: " + why,
                                "leave --samples out"));
  }
  auto how =
      options_of_fits(options, tolerance_of_samples).samples(samples).refits(refits_of(samples)).noise_factor(noise_factor);
  how.seed(how.seed() + (static_cast<std::uint64_t>(first_channel) << 32U));
  if (is_usual) how.most_iterations(std::max(epochs, fewest_iterations));
  const auto noise = noise_of(data, is_usual ? NoiseDraws::of_cells : NoiseDraws::of_samples);
  SampledErrors errors{Bootstrap(model.ptr(), objective, how).sample(noise), noise_factor, is_usual};
  errors.samples.seen = flux_seen(data.coords(), model->make_sky(), data.visibilities, data.channels);
  return errors;
}

ErrorMaps SampledErrors::maps(const Tensor& sky, const GridCoords& coords, const std::vector<Beam>& beams) const {
  return error_maps(sky, samples, coords, beams, is_usual ? MapsOfErrors::of_error : MapsOfErrors::all);
}

ErrorSummary summary_of(const MappedErrors& errors) { return {errors.samples, errors.noise_factor, errors.maps}; }

std::vector<ErrorFile> error_files(const MappedErrors& errors) {
  const auto& maps = errors.maps;
  const auto of = [&errors](const char* words) {
    return fmt::format("{} of {} fits to simulated data of the image (parametric bootstrap)", words, errors.samples);
  };
  const ErrorFile error{
      "error.fits", maps.error,
      of("error: root mean square difference from the image, times error_factor of summary.json, and what data still hold")};
  if (errors.is_usual) return {error};
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
