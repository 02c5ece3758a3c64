#include <mpol_cpp/cli/report/fit_facts.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/hypot.h>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/uncertainty/sharp_source.h>
#include <mpol_cpp/visibilities/stokes.h>

namespace mpol::cli {
namespace {

constexpr double edge_part = 0.03, floor_part = 0.1;
constexpr std::int64_t most_ranked = 256;  // pixels along an axis

// The images may be as large as a fit has room for: nothing here makes another plane of their size.

/// The image at about the resolution of the data: means over squares of a fringe's width. Single pixels at an edge are brighter
/// than others where total variation has no neighbour to compare them with.
Tensor smoothed(const Tensor& sky, double pixels) {
  const auto width = std::clamp<std::int64_t>(std::llround(pixels), 1, std::max<std::int64_t>(1, sky.size(-1) / 4));
  return at::avg_pool2d(sky.unsqueeze(1), {width, width}, /*stride=*/{width, width}).squeeze(1);
}

/// The largest pixel of the outermost rows and columns.
double edge_peak(const Tensor& image) {
  const auto npix = image.size(-1);
  const auto band = std::max<std::int64_t>(1, static_cast<std::int64_t>(edge_part * static_cast<double>(npix)));
  double peak = 0;
  for (const std::int64_t axis : {-2, -1}) {
    for (const auto begin : {std::int64_t{0}, npix - band})
      peak = std::max(peak, image.narrow(axis, begin, band).max().item<double>());
  }
  return peak;
}

/// How far squares of pixels are from the phase centre, arcsec: (n, n).
Tensor distances_of_squares(const GridCoords& coords, const SkyOffset& center, std::int64_t n) {
  const auto width = coords.npix() / n, middle = coords.npix() / 2;  // width of a square, pixels
  const double first = static_cast<double>(width - 1) / 2 - static_cast<double>(middle);
  const auto offset = (at::arange(n, torch::kFloat64) * static_cast<double>(width) + first) * coords.cell_size();
  const auto north = (offset + center.north).unsqueeze(1);
  const auto east = center.east - offset - coords.cell_size();  // column npix/2 - 1 is in the middle
  return at::hypot(north, east);
}

/// What the flux's distance from the phase centre makes of it.
/// @param smooth  (nchan, n, n), means of the image's magnitude over squares of some pixels
void measure_distance(FitFacts& facts, const Tensor& smooth, const FinishedFit& fit) {
  const auto flux = smooth.sum(0).to(torch::kFloat64);
  const double total = flux.sum().item<double>();
  const auto distances = distances_of_squares(fit.coords, facts.center, smooth.size(-1));
  facts.flat_radius = std::sqrt(facts.finest_fringe / (units::pi * units::arcsec));
  if (total > 0 && facts.flat_radius > 0)
    facts.flux_beyond_flat = (flux * (distances > facts.flat_radius)).sum().item<double>() / total;
  const auto known = known_beam(fit.data, fit.uv);
  if (!known) return;
  const double frequency = fit.data.frequencies.mean(torch::kFloat64).item<double>();
  const auto power = known->beam.power(distances, frequency);
  facts.primary_beam = {.antennas = known->beam.words(),
                        .fwhm = known->beam.fwhm(frequency),
                        .at_flux = total > 0 ? (flux * power).sum().item<double>() / total : 1};
}

void measure_image(FitFacts& facts, const FinishedFit& fit) {
  const auto& coords = fit.coords;
  const auto& sky = fit.sky;
  const auto npix = coords.npix();
  const auto smooth = smoothed(sky, facts.finest_fringe / coords.cell_size()).abs_();
  facts.peak = smooth.max().item<double>();
  facts.edge_peak = edge_peak(smooth);
  measure_distance(facts, smooth, fit);
  const auto flux = sky.sum({-2, -1}) * coords.cell_area();
  facts.flux = flux.mean().item<double>();
  const auto brightest = flux.argmax().item<std::int64_t>();
  const auto step = (npix + most_ranked - 1) / most_ranked;
  const auto some = sky[brightest].slice(0, 0, npix, step).slice(1, 0, npix, step).flatten();
  const auto rank = std::max<std::int64_t>(1, static_cast<std::int64_t>(floor_part * static_cast<double>(some.numel())));
  facts.floor = std::get<0>(some.kthvalue(rank)).item<double>();
  facts.floor_flux = facts.floor * coords.cell_area() * static_cast<double>(npix * npix);
  facts.flux_of_floor = flux[brightest].item<double>();
}

/// Offsets of a pixel from the middle of the image, arcsec: to the East and to the North.
std::pair<double, double> offsets_of(const GridCoords& coords, std::int64_t row, std::int64_t column) {
  const auto rows_north = row - coords.npix() / 2, columns_west = column - (coords.npix() / 2 - 1);
  return {-static_cast<double>(columns_west) * coords.cell_size(), static_cast<double>(rows_north) * coords.cell_size()};
}

/// The largest residual where a channel is at its sharpest. @param sign  1, or -1 for sources that are negative
void measure_sharpness(FitFacts& facts, const Tensor& residual, const Tensor& sky, double noise, const GridCoords& coords,
                       double sign) {
  const auto turned = [sign](const Tensor& image) { return (sign > 0 ? image : image.neg()).unsqueeze(0); };
  const auto missed = missed_for_sharpness(turned(residual), turned(sky), std::max(facts.sharp_residual, 1.0) * noise);
  if (!missed) return;
  facts.sharp_residual = missed->residual / noise;
  std::tie(facts.sharp_east, facts.sharp_north) = offsets_of(coords, missed->row, missed->column);
}

void measure_residual_image(FitFacts& facts, const Tensor& sky, const DirtyProducts& dirty, const GridCoords& coords) {
  const auto npix = coords.npix();
  facts.channels = dirty.residual.size(0);
  for (std::int64_t channel = 0; channel < facts.channels; ++channel) {
    const auto residual = dirty.residual[channel].reshape({-1});
    const double noise = dirty.noise[static_cast<std::size_t>(channel)];
    const bool negative = -residual.min().item<double>() > residual.max().item<double>();
    const auto pixel = (negative ? residual.argmin() : residual.argmax()).item<std::int64_t>();
    const double peak = std::abs(residual[pixel].item<double>()) / noise;
    measure_sharpness(facts, dirty.residual[channel], sky[channel], noise, coords, 1);
    if (facts.sign == PixelSign::either) measure_sharpness(facts, dirty.residual[channel], sky[channel], noise, coords, -1);
    if (!(peak > facts.residual_peak)) continue;
    facts.residual_peak = peak;
    facts.residual_channel = channel;
    std::tie(facts.residual_east, facts.residual_north) = offsets_of(coords, pixel / npix, pixel % npix);
  }
}

void measure_surroundings(FitFacts& facts, const WideMap& wide, double field) {
  facts.wide_width = wide.coords.cell_size() * static_cast<double>(wide.coords.npix());
  facts.outside = peak_outside(wide, field / 2);
  auto inside = wide;
  const auto beyond = wide.coords.sky_x().abs().maximum(wide.coords.sky_y().abs()) >= field / 2;
  inside.image = wide.image.masked_fill(beyond, 0);
  facts.inside = peak_outside(inside, 0);
  facts.wide_noise = std::max(wide.noise, 1.4826 * wide.image.abs().median().item<double>());
}

}  // namespace

FitFacts measure_fit(const FinishedFit& fit) {
  const auto& [coords, data, uv, imaging, sky, dirty, sign] = fit;
  FitFacts facts;
  facts.sign = sign;
  facts.cell_size = coords.cell_size();
  facts.npix = coords.npix();
  facts.center = data.observation.center;
  const double longest = dirty.data.q.empty() ? 0 : std::max({dirty.data.q.back(), uv.max_abs_u, uv.max_abs_v});
  facts.finest_fringe = longest > 0 ? 1 / (longest * units::arcsec) : 0;
  measure_image(facts, fit);
  measure_residual_image(facts, sky, dirty, coords);
  if (!dirty.noise.empty()) facts.dirty_noise = *std::max_element(dirty.noise.begin(), dirty.noise.end());
  facts.may_be_negative = !is_intensity(data.observation.stokes);
  measure_surroundings(facts, dirty.remainder.wide, coords.cell_size() * static_cast<double>(coords.npix()));
  facts.residuals = dirty.remainder.statistics;
  facts.parts = dirty.remainder.parts;
  facts.slope = dirty.remainder.slope;
  facts.lengths = dirty.remainder.lengths;
  facts.slope_of_channels = data.nchan > 1;
  facts.of_cells = imaging == Imaging::cells;
  if (!dirty.model.q.empty() && facts.flux > 0 && sign == PixelSign::positive) {
    facts.shortest = dirty.model.q.front();
    const auto& amplitude = dirty.model.amplitude;
    facts.flux_seen = *std::max_element(amplitude.begin(), amplitude.end()) / facts.flux;
  }
  return facts;
}

}  // namespace mpol::cli
