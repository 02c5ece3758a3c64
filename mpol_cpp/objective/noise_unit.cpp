#include <mpol_cpp/objective/noise_unit.h>

#include <cmath>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol {
namespace {

constexpr std::int64_t channels_around = 2;  // of a pixel, that a regularizer may look at

/// A term at an image with one pixel of 1 in its middle.
double at_one_pixel(const Term& term, const GridCoords& coords) {
  const torch::NoGradGuard no_grad;
  const auto npix = coords.npix();
  const std::int64_t around = regularizer_of(term.kind()).joins_channels ? channels_around : 0;
  const auto sky = at::zeros({2 * around + 1, npix, npix}, torch::kFloat64);
  sky[around][npix / 2][npix / 2] = 1;
  return term.evaluate(ModelOutput(coords, {}, sky)).item<double>();
}

}  // namespace

NoiseUnit noise_unit(const GridCoords& coords, const Visibilities& visibilities, std::int64_t nchan, double normalizer) {
  return noise_unit(coords, sum_in_float64(visibilities.weights()), nchan, normalizer);
}

NoiseUnit noise_unit(const GridCoords& coords, double weights, std::int64_t nchan, double normalizer) {
  if (!(normalizer > 0)) throw ValueError(fmt::format("the normalizer is {}; it must be above 0", normalizer));
  const double slope = coords.cell_area() * std::sqrt(weights / static_cast<double>(nchan)) / normalizer;
  return {.slope = slope, .curvature = slope * slope * normalizer, .nchan = nchan};
}

std::vector<double> noise_units_of_channels(const GridCoords& coords, const Visibilities& visibilities,
                                            const ChannelMap& channels, double normalizer) {
  std::vector<double> units;
  for (const auto& sources : channels.sources) {
    double weights = 0;
    for (const auto source : sources) weights += sum_in_float64(visibilities.weights()[source]);
    units.push_back(coords.cell_area() * std::sqrt(weights) / normalizer);
  }
  return units;
}

std::optional<double> lambda_unit(const Term& term, const NoiseUnit& noise, const GridCoords& coords) {
  if (term.kind() == TermKind::custom) return std::nullopt;
  const auto& regularizer = regularizer_of(term.kind());
  const double scale = regularizer.scaled_by ? term.settings().at(*regularizer.scaled_by) : 1;
  switch (regularizer.noise_scale) {
    case NoiseScale::slope:
      return noise.slope * scale;
    case NoiseScale::slope_of_spectrum:
      return noise.slope * std::sqrt(static_cast<double>(noise.nchan)) * scale;
    case NoiseScale::curvature:
      return noise.curvature / (2 * at_one_pixel(term, coords));
    case NoiseScale::none:
      break;
  }
  return std::nullopt;
}

}  // namespace mpol
