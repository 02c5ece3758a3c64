#include <mpol_cpp/analysis/radial_profile.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <span>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/displacement.h>

namespace mpol {
namespace {

constexpr std::int64_t profile_block = 1 << 16;  // samples
constexpr std::int64_t default_loose_bins = 50;
constexpr double edge_on_profile = 1e-8;  // cos i

void check_profile_geometry(const DiscGeometry& geometry) {
  if (!(std::abs(std::cos(geometry.inclination)) >= edge_on_profile)) {
    throw ValueError(
        fmt::format("the inclination is {} degrees; a disc seen edge on has no radial profile: it must differ from 90",
                    geometry.inclination / units::degree));
  }
}

void check_bin_edges(const std::vector<double>& edges) {
  const bool finite = std::all_of(edges.begin(), edges.end(), [](double edge) { return std::isfinite(edge); });
  const bool increase = std::adjacent_find(edges.begin(), edges.end(), std::greater_equal<>()) == edges.end();
  if (edges.size() < 2 || !finite || !increase) {
    throw ValueError(fmt::format("bin edges are {}; at least two are needed, finite and increasing", fmt::join(edges, ", ")));
  }
}

/// 0, step, 2 step, … below `end`; at least one bin.
std::vector<double> steps_up_to(double step, double end) {
  const auto count = std::max<std::int64_t>(2, static_cast<std::int64_t>(std::ceil(end / step)));
  std::vector<double> edges;
  for (std::int64_t i = 0; i < count; ++i) edges.push_back(step * static_cast<double>(i));
  return edges;
}

/// The bin of every distance, (n) int64; -1 outside. A bin includes its lower edge, the last one also its upper edge.
Tensor bins_of_distances(const Tensor& distances, const std::vector<double>& edges) {
  const auto flat = distances.contiguous();
  auto bins = at::empty({flat.numel()}, torch::kInt64);
  const auto* distance = flat.const_data_ptr<double>();
  auto* bin = bins.mutable_data_ptr<std::int64_t>();
  const auto last = static_cast<std::int64_t>(edges.size()) - 2;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const auto found = std::upper_bound(edges.begin(), edges.end(), distance[i]) - edges.begin() - 1;
    bin[i] = found <= last ? found : (distance[i] == edges.back() ? last : -1);
  }
  return bins;
}

Tensor middles(const std::vector<double>& edges) {
  std::vector<double> values;
  for (std::size_t i = 1; i < edges.size(); ++i) values.push_back((edges[i - 1] + edges[i]) / 2);
  return at::tensor(values, torch::kFloat64);
}

std::int64_t bin_count(const std::vector<double>& edges) { return static_cast<std::int64_t>(edges.size()) - 1; }

Tensor count_in_bins(const Tensor& bins, std::int64_t nbins) {
  auto counts = at::zeros({nbins}, torch::kInt64);
  auto* count = counts.mutable_data_ptr<std::int64_t>();
  for (const auto bin : std::span(bins.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(bins.numel()))) {
    if (bin >= 0) ++count[bin];
  }
  return counts;
}

/// Sums of values by bin. @param values, bins (n); @return (nbins) float64
Tensor sum_in_bins(const Tensor& values, const Tensor& bins, std::int64_t nbins) {
  const auto flat = values.contiguous();
  auto sums = at::zeros({nbins}, torch::kFloat64);
  auto* sum = sums.mutable_data_ptr<double>();
  const auto* value = flat.const_data_ptr<double>();
  const auto* bin = bins.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < bins.numel(); ++i) {
    if (bin[i] >= 0) sum[bin[i]] += value[i];
  }
  return sums;
}

struct MeanAndScatter {
  Tensor mean, scatter;  // (nbins) float64
};

/// Mean and standard deviation by bin, in two passes so that digits are kept.
MeanAndScatter mean_in_bins(const Tensor& values, const Tensor& bins, const Tensor& counts) {
  const auto nbins = counts.size(0);
  const auto mean = sum_in_bins(values, bins, nbins) / counts.clamp_min(1);
  const auto residuals = values - mean.index_select(0, bins.clamp_min(0));
  const auto variance = sum_in_bins(residuals.square(), bins, nbins) / (counts - 1).clamp_min(1);
  return {mean, at::where(counts > 1, variance.sqrt(), at::zeros_like(variance))};
}

void check_cube(const Tensor& cube, const GridCoords& coords, const char* what) {
  if (cube.dim() != 3 || cube.size(-1) != coords.npix() || cube.size(-2) != coords.npix()) {
    throw ShapeError(
        fmt::format("the {} has shape {}; it must be (nchan, {}, {})", what, cube.sizes().vec(), coords.npix(), coords.npix()));
  }
}

/// Length of the baselines as the face-on disc would see them.
Tensor deprojected_length(const Tensor& u, const Tensor& v, const DiscGeometry& geometry) {
  const double c = std::cos(geometry.position_angle), s = std::sin(geometry.position_angle);
  return at::hypot((u * c - v * s) * std::cos(geometry.inclination), u * s + v * c);
}

/// exp(2 pi i (u East + v North)), complex128: moves the disc's centre to the phase centre.
Tensor centering_phase(const Tensor& u, const Tensor& v, const DiscGeometry& geometry) {
  return displacement_phase(u, v, at::tensor({-geometry.offset_east, -geometry.offset_north}, torch::kFloat64));
}

double amplitude_scale(const DiscGeometry& geometry, FluxScale scale) {
  return scale == FluxScale::face_on ? 1 / std::cos(geometry.inclination) : 1.0;
}

/// What a pixel counts where all pixels of a beam count as one.
double independent_part(const GridCoords& coords, double beam_area) {
  return beam_area > 0 ? std::min(1.0, coords.cell_area() / beam_area) : 1.0;
}

BrightnessProfile profile_by_area(const Tensor& sky_cube, const GridCoords& coords, const DiscGeometry& geometry,
                                  const std::vector<double>& edges, double beam_area) {
  const PolarIntegrator rings(coords, PolarIntegratorOptions().radii(edges).geometry(geometry));
  const auto map = rings.integrate(sky_cube.detach().to(torch::kCPU, torch::kFloat64));
  const auto pixels = map.area.squeeze(-1) / coords.cell_area();
  const auto scatter = map.variance.squeeze(-1).sqrt();
  return {.radius = middles(edges),
          .mean = map.mean.squeeze(-1),
          .scatter = scatter,
          .error = scatter / (pixels * independent_part(coords, beam_area)).clamp_min(1).sqrt(),
          .pixels = pixels};
}

}  // namespace

BrightnessProfile radial_i(const Tensor& sky_cube, const GridCoords& coords, const DiscGeometry& geometry,
                           const RadialImageOptions& options) {
  check_cube(sky_cube, coords, "image");
  check_profile_geometry(geometry);
  if (!(options.beam_area() >= 0)) {
    throw ValueError(fmt::format("the beam area is {} arcsec^2; it must be at least 0", options.beam_area()));
  }
  const auto east = coords.sky_x() - geometry.offset_east, north = coords.sky_y() - geometry.offset_north;
  const double c = std::cos(geometry.position_angle), s = std::sin(geometry.position_angle);
  const auto minor = (east * c - north * s) / std::cos(geometry.inclination);
  const auto radius = at::hypot(minor, east * s + north * c).flatten();
  const double outermost = std::max(east.abs().max().item<double>(), north.abs().max().item<double>());
  const auto edges = options.edges().empty() ? steps_up_to(std::sqrt(2.0) * coords.cell_size(), outermost) : options.edges();
  check_bin_edges(edges);
  if (options.pixels() == RingPixels::by_area) return profile_by_area(sky_cube, coords, geometry, edges, options.beam_area());
  const auto bins = bins_of_distances(radius, edges);
  BrightnessProfile profile{.radius = middles(edges), .mean = {}, .scatter = {}, .error = {}, .pixels = {}};
  profile.pixels = count_in_bins(bins, bin_count(edges));
  const auto shape = {sky_cube.size(0), bin_count(edges)};
  profile.mean = at::empty(shape, torch::kFloat64);
  profile.scatter = at::empty(shape, torch::kFloat64);
  for (std::int64_t channel = 0; channel < sky_cube.size(0); ++channel) {
    const auto plane = sky_cube[channel].detach().to(torch::kCPU, torch::kFloat64).flatten();
    const auto [mean, scatter] = mean_in_bins(plane, bins, profile.pixels);
    profile.mean[channel].copy_(mean);
    profile.scatter[channel].copy_(scatter);
  }
  const double per_pixel = independent_part(coords, options.beam_area());
  profile.error = profile.scatter / (profile.pixels.to(torch::kFloat64) * per_pixel).clamp_min(1).sqrt();
  return profile;
}

Tensor sampled_error(const BrightnessProfile& of_image, const BrightnessProfile& of_samples, double factor, const Tensor& held) {
  if (of_image.mean.dim() != 2 || of_image.mean.size(0) != 1 || of_samples.mean.dim() != 2 ||
      of_samples.mean.size(1) != of_image.mean.size(1)) {
    throw ShapeError(
        fmt::format("profiles of shape {} of samples and {} of their image: expected (samples, rings) and (1, rings)",
                    of_samples.mean.sizes().vec(), of_image.mean.sizes().vec()));
  }
  if (of_samples.mean.size(0) < 2)
    throw ValueError(fmt::format("{} samples tell no spread: take at least 2", of_samples.mean.size(0)));
  const auto differences = (of_samples.mean - of_image.mean).square().mean(0, /*keepdim=*/true).sqrt();
  return held.defined() ? (factor * differences).hypot(held) : factor * differences;
}

VisibilityProfile radial_v(const Tensor& packed_cube, const GridCoords& coords, const DiscGeometry& geometry,
                           const RadialVisibilityOptions& options) {
  check_cube(packed_cube, coords, "visibility cube");
  if (!packed_cube.is_complex()) throw ShapeError("the visibility cube is real; radial_v needs complex visibilities");
  check_profile_geometry(geometry);
  const auto u = coords.packed_u().flatten(), v = coords.packed_v().flatten();
  const auto q = deprojected_length(u, v, geometry);
  const auto edges =
      options.edges().empty() ? steps_up_to(std::sqrt(0.5) * coords.du(), q.max().item<double>()) : options.edges();
  check_bin_edges(edges);
  const auto bins = bins_of_distances(q, edges);
  const auto counts = count_in_bins(bins, bin_count(edges));
  const auto factor = centering_phase(u, v, geometry) * amplitude_scale(geometry, options.flux_scale());
  VisibilityProfile profile{.q = middles(edges), .mean = {}, .error = {}, .samples = {}};
  profile.mean = at::empty({packed_cube.size(0), bin_count(edges)}, torch::kComplexDouble);
  profile.error = at::empty_like(profile.mean);
  profile.samples = counts.expand({packed_cube.size(0), bin_count(edges)}).contiguous();
  const auto root = counts.to(torch::kFloat64).clamp_min(1).sqrt();
  for (std::int64_t channel = 0; channel < packed_cube.size(0); ++channel) {
    const auto centered = packed_cube[channel].detach().to(torch::kCPU, torch::kComplexDouble).flatten() * factor;
    const auto real = mean_in_bins(at::real(centered), bins, counts), imag = mean_in_bins(at::imag(centered), bins, counts);
    profile.mean[channel].copy_(at::complex(real.mean, imag.mean));
    profile.error[channel].copy_(at::complex(real.scatter / root, imag.scatter / root));
  }
  return profile;
}

VisibilityProfile radial_v(const Visibilities& visibilities, const DiscGeometry& geometry,
                           const RadialVisibilityOptions& options) {
  check_profile_geometry(geometry);
  const auto nchan = visibilities.nchan(), nvis = visibilities.nvis();
  const auto& baselines = visibilities.baselines();
  const auto length = [&](std::int64_t channel, std::int64_t begin, std::int64_t end) {
    const auto [u, v] = baselines.block(channel, begin, end);
    return deprojected_length(u, v, geometry);
  };
  auto edges = options.edges();
  if (edges.empty()) {
    double longest = 0;
    for (std::int64_t channel = 0; channel < (baselines.shared() ? 1 : nchan); ++channel) {
      for (std::int64_t begin = 0; begin < nvis; begin += profile_block) {
        longest = std::max(longest, length(channel, begin, std::min(nvis, begin + profile_block)).max().item<double>());
      }
    }
    if (!(longest > 0)) throw ValueError("all baselines have length zero; give the edges of the bins");
    for (std::int64_t i = 0; i <= default_loose_bins; ++i) {
      edges.push_back(longest * static_cast<double>(i) / static_cast<double>(default_loose_bins));
    }
  }
  check_bin_edges(edges);
  const auto nbins = bin_count(edges);
  VisibilityProfile profile{.q = middles(edges), .mean = {}, .error = {}, .samples = {}};
  auto real = at::zeros({nchan, nbins}, torch::kFloat64), imag = at::zeros_like(real), weight = at::zeros_like(real);
  profile.samples = at::zeros({nchan, nbins}, torch::kInt64);
  for (std::int64_t channel = 0; channel < nchan; ++channel) {
    for (std::int64_t begin = 0; begin < nvis; begin += profile_block) {
      const auto end = std::min(nvis, begin + profile_block);
      const auto [u, v, data, weights] = visibilities.block(channel, begin, end);
      const auto bins = bins_of_distances(deprojected_length(u, v, geometry), edges);
      const auto centered = data * centering_phase(u, v, geometry);
      real[channel] += sum_in_bins(at::real(centered) * weights, bins, nbins);
      imag[channel] += sum_in_bins(at::imag(centered) * weights, bins, nbins);
      weight[channel] += sum_in_bins(weights, bins, nbins);
      profile.samples[channel] += count_in_bins(bins, nbins);
    }
  }
  const double scale = amplitude_scale(geometry, options.flux_scale());
  const auto filled = weight > 0;
  const auto safe = at::where(filled, weight, at::ones_like(weight));
  profile.mean = at::complex(real / safe, imag / safe) * scale;
  const auto error = at::where(filled, scale / safe.sqrt(), at::zeros_like(safe));
  profile.error = at::complex(error, error);
  return profile;
}

}  // namespace mpol
