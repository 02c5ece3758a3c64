#include <mpol_cpp/analysis/polar_integrator.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/analysis/polar_bins.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr double rounded_turn = 2 * units::pi * (1 + 1e-12);

void check_polar_edges(const std::vector<double>& edges, const char* what) {
  const bool finite = std::all_of(edges.begin(), edges.end(), [](double edge) { return std::isfinite(edge); });
  const bool increase = std::adjacent_find(edges.begin(), edges.end(), std::greater_equal<>()) == edges.end();
  if (edges.size() >= 2 && finite && increase) return;
  throw ValueError(
      fmt::format("the edges in {} are {}; at least two are needed, finite and increasing", what, fmt::join(edges, ", ")));
}

void check_polar_options(const PolarIntegratorOptions& options) {
  check_polar_edges(options.radii(), "radius");
  check_polar_edges(options.azimuths(), "azimuth");
  if (options.radii().front() < 0) {
    throw ValueError(fmt::format("the first edge in radius is {} arcsec; it must be at least 0", options.radii().front()));
  }
  if (options.azimuths().back() - options.azimuths().front() > rounded_turn) {
    throw ValueError(fmt::format("the edges in azimuth reach from {} to {} radian; it must be 2 pi at most",
                                 options.azimuths().front(), options.azimuths().back()));
  }
  const double bins = static_cast<double>(options.radii().size() - 1) * static_cast<double>(options.azimuths().size() - 1);
  if (bins > std::numeric_limits<std::int32_t>::max()) {
    throw ValueError(fmt::format("there are {} bins; it must be 2^31 - 1 at most: make them wider", bins));
  }
}

Tensor middles_of(const std::vector<double>& edges) {
  std::vector<double> middles;
  for (std::size_t i = 1; i < edges.size(); ++i) middles.push_back((edges[i - 1] + edges[i]) / 2);
  return at::tensor(middles, torch::kFloat64);
}

/// Multiplies each pixel's parts by its weight and leaves out those of weight 0.
void weigh(std::vector<SparseOperator::Entry>& parts, const Tensor& mask, std::int64_t npix) {
  if (mask.dim() != 2 || mask.size(0) != npix || mask.size(1) != npix) {
    throw ShapeError(fmt::format("the mask has shape ({}); it must be ({}, {})", fmt::join(mask.sizes(), ", "), npix, npix));
  }
  const auto weights = mask.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  const auto *weight = weights.const_data_ptr<double>(), *end = weight + weights.numel();
  const auto* wrong = std::find_if(weight, end, [](double value) { return !(value >= 0 && value <= 1); });
  if (wrong != end) throw ValueError(fmt::format("the mask holds {}; it must be from 0 to 1", *wrong));
  for (auto& part : parts) part.value *= weight[part.column];
  std::erase_if(parts, [](const SparseOperator::Entry& part) { return part.value == 0; });
}

SparseOperator polar_sums(const GridCoords& coords, const PolarIntegratorOptions& options) {
  check_polar_options(options);
  const auto npix = coords.npix();
  auto parts = pixel_parts(PixelsInPlane(coords, options.geometry()), npix, options.radii(), options.azimuths());
  if (options.mask().defined()) weigh(parts, options.mask(), npix);
  for (auto& part : parts) part.value *= coords.cell_area();
  const auto bins = (options.radii().size() - 1) * (options.azimuths().size() - 1);
  return {parts, static_cast<std::int64_t>(bins), npix * npix};
}

/// A shape with other last dimensions.
std::vector<std::int64_t> with_last(const Tensor& like, std::int64_t dropped, std::initializer_list<std::int64_t> last) {
  std::vector<std::int64_t> shape(like.sizes().begin(), like.sizes().end() - dropped);
  shape.insert(shape.end(), last);
  return shape;
}

}  // namespace

std::vector<double> even_edges(double first, double last, std::int64_t count) {
  if (!(count > 0 && std::isfinite(first) && std::isfinite(last) && last > first)) {
    throw ValueError(fmt::format("{} bins from {} to {}; at least one is needed, between increasing ends", count, first, last));
  }
  std::vector<double> edges;
  for (std::int64_t i = 0; i < count; ++i)
    edges.push_back(first + (last - first) * (static_cast<double>(i) / static_cast<double>(count)));
  edges.push_back(last);
  return edges;
}

PolarIntegratorOptions::PolarIntegratorOptions() : azimuths_({0, 2 * units::pi}) {}

PolarIntegrator::PolarIntegrator(const GridCoords& coords, const PolarIntegratorOptions& options)
    : npix_(coords.npix()),
      nr_(static_cast<std::int64_t>(options.radii().size()) - 1),
      nphi_(static_cast<std::int64_t>(options.azimuths().size()) - 1),
      sums_(polar_sums(coords, options)),
      radius_(middles_of(options.radii())),
      azimuth_(middles_of(options.azimuths())),
      area_(sums_.row_sums().view({nr_, nphi_})) {}

Tensor PolarIntegrator::forward(const Tensor& sky_cube) const {
  if (sky_cube.dim() < 2 || sky_cube.size(-1) != npix_ || sky_cube.size(-2) != npix_) {
    throw ShapeError(
        fmt::format("the image has shape ({}); it must be (…, {}, {})", fmt::join(sky_cube.sizes(), ", "), npix_, npix_));
  }
  return sums_.apply(sky_cube.flatten(-2)).view(with_last(sky_cube, 2, {nr_, nphi_}));
}

Tensor PolarIntegrator::adjoint(const Tensor& map) const {
  if (map.dim() < 2 || map.size(-1) != nphi_ || map.size(-2) != nr_) {
    throw ShapeError(fmt::format("the map has shape ({}); it must be (…, {}, {})", fmt::join(map.sizes(), ", "), nr_, nphi_));
  }
  return sums_.apply_adjoint(map.flatten(-2)).view(with_last(map, 2, {npix_, npix_}));
}

PolarMap PolarIntegrator::integrate(const Tensor& sky_cube) const {
  PolarMap map{.sum = forward(sky_cube), .mean = {}, .variance = {}, .area = area_.to(sky_cube.device())};
  const auto filled = map.area > 0;
  const auto per_area = at::where(filled, 1 / at::where(filled, map.area, at::ones_like(map.area)), at::zeros_like(map.area));
  map.mean = (map.sum * per_area).to(map.sum.scalar_type());
  const auto spread = sums_.spread(sky_cube.flatten(-2), map.mean.flatten(-2)).view(map.sum.sizes());
  map.variance = (spread * per_area).to(map.sum.scalar_type());
  return map;
}

double farthest_radius(const GridCoords& coords, const DiscGeometry& geometry) {
  const PixelsInPlane pixels(coords, geometry);
  double farthest = 0;
  for (const auto row : {std::int64_t{0}, coords.npix()}) {
    for (const auto column : {std::int64_t{0}, coords.npix()}) {
      const auto corner = pixels.corner(row, column);
      farthest = std::max(farthest, std::hypot(corner.x, corner.y));
    }
  }
  return farthest;
}

}  // namespace mpol
