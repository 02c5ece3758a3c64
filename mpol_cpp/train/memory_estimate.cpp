#include <mpol_cpp/train/memory_estimate.h>

#include <algorithm>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/gridding/compared_memory.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_arrays.h>
#include <mpol_cpp/train/options/loss_history.h>

namespace mpol {
namespace {

constexpr double program_bytes = 184 * 0x1p20;  // at rest, with LibTorch and casacore

void check_memory_size(const char* name, std::int64_t value) {
  if (value < 1) throw ValueError(fmt::format("{} is {}; it must be at least 1", name, value));
}

/// Channels of the images that the results are of.
std::int64_t channels_of_results(const MemorySettings& settings) {
  return std::max(settings.nchan(), settings.channels_of_cube());
}

double dirty_images(double npix, double nchan) {
  // Per channel the images and beam in float64; while one channel is made, a complex plane and its transform.
  return 8 * npix * npix * (3 * nchan + 6);
}

/// The images that a fit ends with: of cells, or of samples that are compared with the model.
double images_of_results(const MemorySettings& settings) {
  const auto nchan = static_cast<double>(channels_of_results(settings)), npix = static_cast<double>(settings.npix());
  if (settings.likelihood().of_cells) return dirty_images(npix, nchan);
  constexpr double statistics = 8 * 0x1p20;  // of several threads
  const auto working = static_cast<double>(gridding::needed_to_compare(settings.npix(), settings.visibilities()));
  return 8 * npix * npix * (2 * nchan + 1) + working + statistics;
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

LikelihoodSizes sizes_of(const MemorySettings& settings) {
  return {.npix = settings.npix(),
          .nchan = settings.nchan(),
          .channels_of_results = channels_of_results(settings),
          .problems = settings.problems(),
          .dtype = settings.dtype(),
          .on_gpu = settings.on_gpu(),
          .kernels_in_memory = settings.kernels_in_memory(),
          .gaussian = settings.gaussian(),
          .visibilities = settings.visibilities(),
          .samples_at_once = settings.samples_at_once(),
          .data_dtype = settings.data_dtype()};
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
  const auto likelihood = settings.likelihood().memory(sizes_of(settings));
  const auto of_results = static_cast<double>(channels_of_results(settings));
  const double results = std::max(images_of_results(settings), likelihood.ending) + 2 * cube;

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
  const double more_of_results = std::max(0.0, results - fit - history);  // made when the fit is done and its memory free again
  add("dirty images", more_of_results);
  // Before the fit.
  add("making of the likelihood", std::max(0.0, likelihood.making - likelihood.held - std::max(fit + history, results)));
  add("visibilities", settings.data_bytes());
  // Tables and sorted samples of cell averages, of which the allocator keeps a part, but not beside the results.
  const double of_cells = std::min(8 * static_cast<double>(settings.visibilities()), 48 * 0x1p20);
  add("gridding", std::max(0.0, of_cells - more_of_results));
  return estimate;
}

MemoryEstimate estimate_dirty_memory(std::int64_t npix, std::int64_t nchan) {
  check_memory_size("npix", npix);
  check_memory_size("nchan", nchan);
  return {{{"dirty images", dirty_images(static_cast<double>(npix), static_cast<double>(nchan))}}};
}

}  // namespace mpol
