#include <mpol_cpp/cli/image/weight_check.h>

#include <algorithm>
#include <cstdint>

#include <ATen/ops/arange.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/train/source_removal.h>

namespace mpol::cli {
namespace {

constexpr std::int64_t most_samples = 1 << 18, most_pixels_of_source = 1 << 18;

/// Evenly spread samples, of all channels the same.
Visibilities some_samples(const Visibilities& visibilities) {
  const auto step = (visibilities.nchan() * visibilities.nvis() + most_samples - 1) / most_samples;
  return step == 1 ? visibilities : visibilities.select(at::arange(0, visibilities.nvis(), step, torch::kInt64));
}

}  // namespace

std::optional<ResidualStatistics> statistics_without_source(const GridCoords& coords, const Visibilities& visibilities) {
  constexpr double tolerance = 5e-3;
  const auto samples = some_samples(visibilities);
  const auto field = source_field(coords, samples);
  if (samples.nchan() * field.coords.npix() * field.coords.npix() > most_pixels_of_source) return std::nullopt;
  try {
    const auto residual = without_source(samples, field, UsualImageOptions().tolerance(tolerance));
    return residual_statistics(residual.data() * residual.weights().sqrt());
  } catch (const DivergedError& error) {
    log_info(fmt::format("the source could not be taken out of the data to look at their noise: {}", error.what()));
    return std::nullopt;
  }
}

std::string weights_warning(const Scatter& scatter, const GridCoords& coords, const Visibilities& visibilities) {
  if (scatter.cells == 0 || scatter.acceptable()) return {};
  const double median = std::max(scatter.real, scatter.imag);
  const auto without = statistics_without_source(coords, visibilities);
  if (!without) {
    return fmt::format(
        "the data scatter {:.2f} times more in uv cells than their weights say (medians {:.3f} real, {:.3f} imaginary; limit "
        "{}): "
        "the weights look too large by a factor of {:.2f}, unless the source changes within cells (mpol weights takes it out)",
        median, scatter.real, scatter.imag, Scatter::limit, median * median);
  }
  const double sigma = without->sigma_factor;
  if (!(sigma > Scatter::limit)) {
    log_info(
        fmt::format("the data scatter {:.2f} times more in uv cells than their weights say, because the source changes within "
                    "these: without it {:.2f} times",
                    median, sigma));
    return {};
  }
  return fmt::format(
      "without their source the data scatter {:.2f} times more than their weights say (median of |r|, limit {}): the weights "
      "look "
      "too large by a factor of {:.2f}",
      sigma, Scatter::limit, sigma * sigma);
}

}  // namespace mpol::cli
