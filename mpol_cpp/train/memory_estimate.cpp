#include <mpol_cpp/train/memory_estimate.h>

#include <algorithm>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/host_memory.h>

namespace mpol {
namespace {

constexpr double program_bytes = 160 * 0x1p20;  // LibTorch at rest

void check_memory_size(const char* name, std::int64_t value) {
  if (value < 1) throw ValueError(fmt::format("{} is {}; it must be at least 1", name, value));
}

double dirty_images(double npix, double nchan) {
  // Per channel the images and beam in float64; while one channel is made, a complex plane and its transform.
  return 8 * npix * npix * (3 * nchan + 6);
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
  const auto dtype = settings.dtype();
  if (dtype != torch::kFloat32 && dtype != torch::kFloat64) {
    throw ValueError(fmt::format("fits are in float32 or float64, not {}", c10::toString(dtype)));
  }
  const auto npix = static_cast<double>(settings.npix()), nchan = static_cast<double>(settings.nchan());
  const double cube =
      static_cast<double>(c10::elementSize(dtype)) * npix * npix * nchan * static_cast<double>(settings.problems());
  // Base, gradient, two moments, the copy kept for divergence, what a step keeps of softplus, convolution, transform and
  // regularisers, and the results: measured at 23 (float64) and 24 (float32) arrays of the cube.
  const double fit = 26 * cube;
  const double history = settings.optimizer() == OptimizerKind::lbfgs ? 2 * 100 * cube : 0;  // of steps and gradient changes
  const double results = dirty_images(npix, nchan) + 2 * cube;

  MemoryEstimate estimate;
  const auto add = [&](const char* name, double bytes) {
    if (bytes > 0) estimate.parts.push_back({name, bytes});
  };
  add("program", program_bytes);
  add("fit", fit);
  add("history of L-BFGS", history);
  add("dirty images", std::max(0.0, results - fit - history));  // made when the fit is done and its memory free again
  add("visibilities", settings.data_bytes());
  return estimate;
}

MemoryEstimate estimate_dirty_memory(std::int64_t npix, std::int64_t nchan) {
  check_memory_size("npix", npix);
  check_memory_size("nchan", nchan);
  return {{{"dirty images", dirty_images(static_cast<double>(npix), static_cast<double>(nchan))}}};
}

}  // namespace mpol
