#include <mpol_cpp/train/memory_estimate.h>

#include <algorithm>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/fourier/sample_strips.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_arrays.h>
#include <mpol_cpp/train/options/loss_history.h>

namespace mpol {
namespace {

constexpr double program_bytes = 184 * 0x1p20;  // at rest, with LibTorch and casacore

void check_memory_size(const char* name, std::int64_t value) {
  if (value < 1) throw ValueError(fmt::format("{} is {}; it must be at least 1", name, value));
}

/// Bytes that predicting all samples takes, block by block: coordinates, points with the records they are sorted in or with model
/// and data; a transform in float64.
double prediction_bytes(const MemorySettings& settings) {
  const auto block = static_cast<double>(losses::prediction_block_for(settings.npix()));
  const auto pixels = static_cast<double>(settings.npix() * settings.npix());
  return 110 * pixels + 96 * std::min(static_cast<double>(settings.visibilities()), block);
}

/// Channels of the images that the results are of.
std::int64_t channels_of_results(const MemorySettings& settings) {
  return std::max(settings.nchan(), settings.channels_of_cube());
}

double dirty_images(double npix, double nchan) {
  // Per channel the images and beam in float64; while one channel is made, a complex plane and its transform.
  return 8 * npix * npix * (3 * nchan + 6);
}

/// Pairs of a move and a change of the gradient that L-BFGS and the two states kept for divergence hold: the states, of the last
/// epochs, share pairs with one another and on the CPU with L-BFGS, which on a GPU has an array of its own for all.
double lbfgs_pairs(const MemorySettings& settings) {
  using Limits = ops::LbfgsLimits;
  const auto kept = static_cast<double>(Limits::history + 2 * Limits::iterations);
  const auto made = static_cast<double>(Limits::iterations) * static_cast<double>(settings.epochs());
  const auto slots = static_cast<double>(Limits::slots);
  return settings.on_gpu() ? slots + std::min(kept, made) : std::min(kept + 1, made);
}

/// What a likelihood takes during the fit, at most while it is made, for chi^2 of the loose visibilities or the residual at
/// the samples in the end, and, as a part of the first, for an evaluation, bytes.
struct LikelihoodMemory {
  double held = 0, making = 0, ending = 0, evaluating = 0;
};

/// Dirty images and residual of samples: fine grids of the images' transform and of the model's, and a block of samples in both.
double residual_of_samples(const MemorySettings& settings) {
  const auto npix = static_cast<double>(settings.npix()), nchan = static_cast<double>(channels_of_results(settings));
  return npix * npix * (96 + 24 * nchan) + std::min(static_cast<double>(settings.visibilities()), 0x1p20) * 100;
}

LikelihoodMemory exact_memory(const MemorySettings& settings) {
  const auto npix = static_cast<double>(settings.npix()), nchan = static_cast<double>(settings.nchan());
  const auto problems = static_cast<double>(settings.problems());
  const bool single = settings.dtype() == torch::kFloat32;
  // Per channel kernel, dirty vector and its double, and in float32 the kernel again and the anchors with their copies for
  // checkpoints; one plane of twice the image's size to transform in, for each precision.
  const double kernels = settings.kernels_in_memory() ? 16 + (single ? 8 : 0) : 0;
  const double of_channel = 16 + kernels + (single ? 16 * problems : 0), planes = 32 + (single ? 16 : 0);
  // On a GPU a quadratic form in float64, of as many images together as 512 MiB hold, or of one.
  const double images = nchan * problems, together = std::clamp(0x1p29 / (96 * npix * npix), 1.0, images);
  const double evaluation = settings.on_gpu() ? npix * npix * (40 * images + 96 * together) : 0;
  // One transform in float64 on four times the image's size, with its results and the points of one block; per channel
  // the kernel and what the operator and the likelihood made from it have both. Of one block of samples coordinates, data and
  // weights, and the sorted points; of a chunk the order of its samples.
  const auto samples = static_cast<double>(settings.visibilities());
  const SampleStripOptions strips;
  const auto most = static_cast<double>(strips.most_samples);
  const double block =
      std::min(samples, most) * 100 + (samples > most ? std::min(samples, static_cast<double>(strips.chunk)) * 6 : 0);
  return {npix * npix * (of_channel * nchan + planes) + evaluation,
          npix * npix * (384 + (20 + (settings.kernels_in_memory() ? 16 : 0)) * nchan) + block, residual_of_samples(settings),
          evaluation};
}

LikelihoodMemory loose_memory(const MemorySettings& settings) {
  const auto npix = static_cast<double>(settings.npix()), nchan = static_cast<double>(settings.nchan());
  const auto size = static_cast<double>(c10::elementSize(settings.dtype())),
             samples = static_cast<double>(settings.samples_at_once() > 0
                                               ? std::min(settings.samples_at_once(), settings.visibilities())
                                               : settings.visibilities());
  // For each channel with points of its own two grids of twice the image's size. Of each sample its place in tiles and, with
  // it, data and weight, or with other noise the model and what has another dtype than the fit; while points are sorted,
  // records of them.
  const bool noise = settings.likelihood() == LikelihoodKind::noise;
  const double grids = 12 * size * npix * npix * nchan, places = 2 * size + 6, records = 2 * size + 8;
  const double converted = settings.data_dtype() == settings.dtype() ? 0 : 3 * size;
  const double values = noise ? 2 * size + converted : 3 * size;
  const double ending = std::max(residual_of_samples(settings), noise ? prediction_bytes(settings) : 0);
  // Tiles of many points are summed in parts, 2 bytes a point.
  return {grids + samples * (places + values + 2), grids + samples * (places + records + 2), ending, grids};
}

/// What a recording on a GPU keeps for its replays while others compute beside it (the gap, the image in the end), and the copies
/// that put back what its first run changed, bytes. An iteration of POGM by LibTorch's operations, as it is where wavelets have a
/// weight, was measured on the CPU, with 2 channels of 24 x 24 pixels and 4 problems, at 19 arrays of the cube, and at 71 with
/// five further planes of duals; our kernels hold fewer: eight planes of duals and two of a further one. An eager step is within
/// its fit.
double recording_bytes(const MemorySettings& settings, const LikelihoodMemory& likelihood, double cube) {
  if (!settings.on_gpu() || settings.optimizer() == OptimizerKind::admm) return 0;  // ADMM's steps are not recorded
  const double proximal = 22 + 11 * static_cast<double>(settings.more_duals()), copies = 4;
  return (is_proximal(settings.optimizer()) ? proximal : copies) * cube + likelihood.evaluating;
}

LikelihoodMemory likelihood_memory(const MemorySettings& settings) {
  switch (settings.likelihood()) {
    case LikelihoodKind::gridded:
      return {0, 0, prediction_bytes(settings)};
    case LikelihoodKind::exact:
      return exact_memory(settings);
    case LikelihoodKind::loose:
    case LikelihoodKind::noise:
      return loose_memory(settings);
  }
  throw ValueError(fmt::format("{} is not a likelihood", static_cast<int>(settings.likelihood())));
}

}  // namespace

double MemoryEstimate::total() const {
  double sum = 0;
  for (const auto& part : parts) sum += part.bytes;
  return sum;
}

std::string MemoryEstimate::words() const {
  auto sorted = parts;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::string list;
  for (const auto& part : sorted) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", part.name, memory_words(part.bytes));
  return fmt::format("{} ({})", memory_words(total()), list);
}

MemoryEstimate estimate_memory(const MemorySettings& settings) {
  check_memory_size("npix", settings.npix());
  check_memory_size("nchan", settings.nchan());
  check_memory_size("problems", settings.problems());
  check_memory_size("epochs", settings.epochs());
  check_memory_size("columns", settings.columns());
  if (settings.more_duals() < 0) {
    throw ValueError(fmt::format("more_duals is {}; it must be at least 0", settings.more_duals()));
  }
  if (settings.channels_of_cube() < 0) {
    throw ValueError(fmt::format("channels_of_cube is {}; it must be at least 0", settings.channels_of_cube()));
  }
  if (settings.visibilities() < 0) {
    throw ValueError(fmt::format("visibilities is {}; it must be at least 0", settings.visibilities()));
  }
  const auto dtype = settings.dtype();
  if (dtype != torch::kFloat32 && dtype != torch::kFloat64) {
    throw ValueError(fmt::format("fits are in float32 or float64, not {}", c10::toString(dtype)));
  }
  const auto npix = static_cast<double>(settings.npix()), nchan = static_cast<double>(settings.nchan());
  const double cube =
      static_cast<double>(c10::elementSize(dtype)) * npix * npix * nchan * static_cast<double>(settings.problems());
  // Base, gradient, two moments, the copy kept for divergence, what a step keeps of softplus, convolution, transform and
  // regularisers, and the results: measured at 23 (float64) and 24 (float32) arrays of the cube.
  // POGM's: its points and gradients, six planes of duals, two kept states with theirs, five images of the trail, and in the end
  // the gap with duals of its own: measured at 57 to 75. Each further plane of duals is there three times, the gap as many, and
  // the states copies: measured at 2 to 13 each.
  // ADMM has its splitting, the vectors of its conjugate gradients and the points before a step, too: measured at 12 to 36 more.
  const double splitting = settings.optimizer() == OptimizerKind::admm ? 36 : 0;
  const double proximal = 80 + splitting + 14 * static_cast<double>(settings.more_duals());
  const double fit = (is_proximal(settings.optimizer()) ? proximal : 26) * cube;
  // L-BFGS has no moments, but five vectors and two in each kept state, and the pairs.
  const double history = settings.optimizer() == OptimizerKind::lbfgs ? (2 * lbfgs_pairs(settings) + 7) * cube : 0;
  const auto likelihood = likelihood_memory(settings);
  const auto of_results = static_cast<double>(channels_of_results(settings));
  const double results = std::max(dirty_images(npix, of_results), likelihood.ending) + 2 * cube;

  MemoryEstimate estimate;
  const auto add = [&](const char* name, double bytes) {
    if (bytes > 0) estimate.parts.push_back({name, bytes});
  };
  add("program", program_bytes);
  add("fit", fit);
  add("history of L-BFGS", history);
  add("likelihood", likelihood.held);
  add("recording", recording_bytes(settings, likelihood, cube));
  add("images of other channels", 8 * npix * npix * (of_results - nchan));
  add("losses of the epochs",
      LossHistory::bytes_per_epoch(static_cast<std::size_t>(settings.columns())) * static_cast<double>(settings.epochs()));
  add("dirty images", std::max(0.0, results - fit - history));  // made when the fit is done and its memory free again
  // Before the fit.
  add("making of the likelihood", std::max(0.0, likelihood.making - likelihood.held - std::max(fit + history, results)));
  add("visibilities", settings.data_bytes());
  // Tables and sorted samples of cell averages, of which the allocator keeps a part.
  add("gridding", std::min(8 * static_cast<double>(settings.visibilities()), 48 * 0x1p20));
  return estimate;
}

MemoryEstimate estimate_dirty_memory(std::int64_t npix, std::int64_t nchan) {
  check_memory_size("npix", npix);
  check_memory_size("nchan", nchan);
  return {{{"dirty images", dirty_images(static_cast<double>(npix), static_cast<double>(nchan))}}};
}

}  // namespace mpol
