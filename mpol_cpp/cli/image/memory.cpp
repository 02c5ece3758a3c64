#include <mpol_cpp/cli/image/memory.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/crossval/fold_batch.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol::cli {
namespace {

/// The fewest samples that --batch-size auto takes at a time; it takes more where there is memory for them.
constexpr std::int64_t least_chunk_of_estimate = 1 << 16;

/// What cross-validation takes beside the fit: of each fold two likelihoods, a model and its start, and for a while the samples
/// that it trains on.
MemoryPart memory_of_folds(const ImageOptions& options, double pixels, double samples) {
  constexpr double model = 48, kernels = 80, sample = 48, sorted = 44;  // bytes of a pixel, of a sample
  const auto folds = options.crossval.score == Score::folds ? static_cast<double>(options.crossval.folds) : 2;
  double bytes = folds * pixels * model + 2 * samples * sample;
  if (!options.likelihood_kind().of_cells && options.is_gaussian()) bytes += (folds + 1) * pixels * kernels;
  if (!options.is_gaussian()) bytes += folds * samples * sorted;
  // The steps of folds alone are in the estimate of the fit.
  if (const auto at_once = options.crossval.folds_at_once.value_or(1); at_once > 1) {
    const auto of_pixel = detail::FoldBatch::images_of_fold * static_cast<double>(c10::elementSize(options.data.dtype));
    bytes += static_cast<double>(at_once) * pixels * of_pixel;
  }
  return {"folds of the cross-validation", bytes};
}

/// Planes of dual images in the fit, besides those of total variation.
std::int64_t more_duals(const ImageOptions& options) {
  std::int64_t planes = 0;
  for (const auto kind : all_regularizers()) {
    if (in_fit(options, kind)) planes += regularizer_of(kind).dual_images;
  }
  return planes;
}

std::string fewer_words(std::int64_t nchan) {
  return nchan == 1 ? "choose a smaller --npix" : "choose a smaller --npix or fewer --channels";
}

std::string size_words(std::int64_t npix, std::int64_t nchan) {
  return nchan == 1 ? fmt::format("{}", npix) : fmt::format("{} with {} channels", npix, nchan);
}

}  // namespace

MemoryPart memory_of_errors(std::int64_t samples, std::int64_t npix, FitChannels channels, bool is_usual) {
  constexpr double of_fits = 100, of_number = 24, most_numbers = 1 << 22;  // of those that are smoothed or sorted at once
  const double of_maps = is_usual ? 40 : 80, of_results = is_usual ? 16 : 48;
  const auto pixels = static_cast<double>(npix * npix);
  const auto at_once = static_cast<double>(channels.at_once);
  const double of_one = 4 * static_cast<double>(samples + refits_of(samples)) + of_fits + of_maps,
               of_others = channels.all > channels.at_once ? of_results * static_cast<double>(channels.all) : 0;
  return {"samples of the errors", pixels * (4 * static_cast<double>(samples) + at_once * of_one + of_others) +
                                       of_number * std::min(most_numbers, pixels * static_cast<double>(samples))};
}

SampleSizes SampleSizes::of(const Visibilities& visibilities) {
  return {visibilities.nchan() * visibilities.nvis(), memory_of_samples(visibilities),
          c10::toRealValueType(visibilities.data().scalar_type())};
}

MemoryEstimate fit_memory(const ImageOptions& options, std::int64_t npix, FitChannels channels,
                          const std::optional<SampleSizes>& samples, torch::Device device) {
  const auto nchan = channels.at_once;
  const auto terms = regularizer_terms(with_units_as_numbers(options.regularizers)).size() +
                     regularizer_terms(guessed_regularizers(options)).size();
  auto settings = MemorySettings(npix, nchan)
                      .channels_of_cube(channels.all)
                      .dtype(options.data.dtype)
                      .optimizer(choose_optimizer(options).kind)
                      .more_duals(more_duals(options))
                      .likelihood(options.likelihood_kind())
                      .gaussian(options.is_gaussian())
                      .kernels_in_memory(options.kernel_folder.empty())
                      .on_gpu(device.is_cuda())
                      .epochs(*options.epochs)
                      .columns(static_cast<std::int64_t>(2 + terms));
  if (samples) {
    settings.visibilities(samples->count)
        .samples_at_once(options.in_chunks ? least_chunk_of_estimate : 0)
        .data_bytes(samples->bytes)
        .data_dtype(samples->dtype);
  }
  const auto count = samples ? static_cast<double>(samples->count) : 0;
  auto estimate = estimate_memory(settings);
  if (!options.regularizers.searched.empty())
    estimate.parts.push_back(memory_of_folds(options, static_cast<double>(npix * npix * nchan), count));
  if (!options.fit_blocks.empty() && samples) {
    constexpr double of_sample = 96;  // calibrated ones, and what gains are fitted to
    estimate.parts.push_back({"gains of blocks", of_sample * count});
  }
  if (!options.points.empty() && samples) {
    constexpr double of_sample = 48, of_pixel = 3 * 8;  // the data without them; what each shows in the image
    const auto sources = std::max<std::size_t>(parse_points(options.points).size(), 4);
    const auto pixels = static_cast<double>(npix * npix * nchan) * static_cast<double>(sources);
    estimate.parts.push_back({"point sources", of_sample * count + of_pixel * pixels});
  }
  if (asks_for_samples(options)) estimate.parts.push_back(memory_of_errors(*options.samples, npix, channels, false));
  return estimate;
}

SampleMemory memory_for_samples(const ImageOptions& options) {
  return [&options](std::int64_t nchan) {
    constexpr double of_blocks = 0x1p28;  // that the estimate adds for samples whose number it knows
    auto budget = available_memory().value_or(std::numeric_limits<double>::infinity());
    if (options.memory_limit) budget = std::min(budget, *options.memory_limit * 0x1p30);
    if (!options.data.npix) return budget / 2;
    const auto planes = options.mode == ImageMode::continuum ? 1 : nchan;
    const FitChannels channels{std::min(options.channels_at_once.value_or(planes), planes), planes};
    return budget - fit_memory(options, *options.data.npix, channels, std::nullopt, torch::kCPU).total() - of_blocks;
  };
}

double memory_for_chunks(const ImageOptions& options, const GriddedDataset& dataset, const Visibilities& visibilities,
                         torch::Device device) {
  constexpr double least = 0x1p20;
  auto available = device.is_cpu() ? available_memory() : std::optional(static_cast<double>(memory_info(device).free_bytes));
  auto budget = available.value_or(std::numeric_limits<double>::infinity()) / 2;
  if (options.memory_limit) {
    const auto rest =
        fit_memory(options, dataset->coords().npix(), {dataset->nchan()}, SampleSizes::of(visibilities), device).total();
    budget = std::min(budget, *options.memory_limit * 0x1p30 - rest);
  }
  return std::isfinite(budget) ? std::max(least, budget) : 0x1p30;
}

double dirty_memory(std::int64_t npix, std::int64_t nchan) { return estimate_dirty_memory(npix, nchan).total(); }

void check_memory(double needed, std::optional<double> available, std::int64_t npix, std::int64_t nchan) {
  if (!available || needed <= *available) return;
  throw Error(
      error_text("--npix", size_words(npix, nchan),
                 fmt::format("needs about {} of memory and {} are available", memory_words(needed), memory_words(*available)),
                 fewer_words(nchan)));
}

Error out_of_memory(const MemoryEstimate& estimate, std::optional<double> free, const ImageOptions& options, std::int64_t npix,
                    std::int64_t nchan) {
  auto remedy = fewer_words(nchan);
  if (!options.likelihood_kind().of_cells) remedy += ", or --likelihood gridded";
  if (choose_optimizer(options).kind == OptimizerKind::lbfgs) remedy += ", or --optimizer adam";
  if (options.data.dtype == torch::kFloat64) remedy += ", or --dtype float32";
  const auto free_words = free ? memory_words(*free) : std::string("an unknown part of it");
  return Error(error_text("out of memory",
                          fmt::format("--npix {} was estimated at {}", size_words(npix, nchan), estimate.words()),
                          fmt::format("{} was free at the beginning, and something else took of it", free_words),
                          remedy + "; --memory-limit refuses a fit that would need more before it begins"));
}

void check_memory_limit(double needed, double limit, std::int64_t npix, std::int64_t nchan) {
  if (needed <= limit) return;
  throw Error(error_text("--memory-limit", memory_words(limit),
                         fmt::format("--npix {} needs about {} of memory", size_words(npix, nchan), memory_words(needed)),
                         "raise the limit, or " + fewer_words(nchan)));
}

}  // namespace mpol::cli
