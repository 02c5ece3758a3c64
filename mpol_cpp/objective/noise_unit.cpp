#include <mpol_cpp/objective/noise_unit.h>

#include <cmath>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol {
namespace {

/// A term at an image with one pixel of 1 in its middle.
double at_one_pixel(const Term& term, const GridCoords& coords) {
  const torch::NoGradGuard no_grad;
  const auto npix = coords.npix();
  const auto sky = at::zeros({1, npix, npix}, torch::kFloat64);
  sky[0][npix / 2][npix / 2] = 1;
  return term.evaluate(ModelOutput(coords, {}, sky)).item<double>();
}

}  // namespace

NoiseUnit noise_unit(const GridCoords& coords, const Visibilities& visibilities, std::int64_t nchan, double normalizer) {
  if (!(normalizer > 0)) throw ValueError(fmt::format("the normalizer is {}; it must be above 0", normalizer));
  const double weights = sum_in_float64(visibilities.weights()) / static_cast<double>(nchan);
  const double slope = coords.cell_area() * std::sqrt(weights) / normalizer;
  return {.slope = slope, .curvature = slope * slope * normalizer};
}

std::optional<double> lambda_unit(const Term& term, const NoiseUnit& noise, const GridCoords& coords) {
  switch (term.kind()) {
    case TermKind::sparsity:
    case TermKind::tv_image:
    case TermKind::tv_channel:
      return noise.slope;
    case TermKind::entropy:
      return noise.slope * term.settings().at(1);
    case TermKind::tsv:
    case TermKind::psd:
      return noise.curvature / (2 * at_one_pixel(term, coords));
    case TermKind::custom:
    case TermKind::edge_clamp:
    case TermKind::uv_sparsity:
      break;
  }
  return std::nullopt;
}

}  // namespace mpol
