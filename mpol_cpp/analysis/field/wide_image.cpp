#include <mpol_cpp/analysis/field/wide_image.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/fft_ifft2.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/coordinates/orientation.h>

namespace mpol {
namespace {

constexpr std::int64_t samples_of_block = 1 << 16;

/// Real part of sum_k s_k exp(2 pi i (u_k l + v_k m)) of sums in packed cells.
Tensor packed_image(std::vector<c10::complex<double>> sums, std::int64_t npix) {
  const auto cells = at::from_blob(sums.data(), {npix, npix}, torch::kComplexDouble);
  return at::real(at::fft_ifft2(cells)) * static_cast<double>(npix * npix);
}

/// Takes `gain` times the beam, moved to a pixel, out of a packed residual.
void subtract_beam(double* residual, const double* beam, std::int64_t npix, std::int64_t pixel, double gain) {
  const auto row = pixel / npix, column = pixel % npix;
  for (std::int64_t y = 0; y < npix; ++y) {
    const double* from = beam + ((y - row + npix) % npix) * npix;
    double* to = residual + y * npix;
    for (std::int64_t x = 0; x < column; ++x) to[x] -= gain * from[x - column + npix];
    for (std::int64_t x = column; x < npix; ++x) to[x] -= gain * from[x - column];
  }
}

double noise_of(const WideMap& map) { return std::max(map.noise, median_noise(map.image)); }

/// Where a short CLEAN finds flux above five times the noise and 2 % of the peak: (npix, npix) bool, packed.
Tensor found_flux(const WideMap& map) {
  const auto npix = map.coords.npix();
  const auto residual = sky_to_packed(map.image).contiguous().clone(), beam = map.beam.contiguous();
  auto found = at::zeros_like(residual, torch::kBool);
  if (!(map.noise > 0)) return found;
  auto* values = residual.mutable_data_ptr<double>();
  const auto brighter = [](double a, double b) { return std::abs(a) < std::abs(b); };
  const auto peak = [&] { return std::max_element(values, values + npix * npix, brighter) - values; };
  const double level = std::max(ShortClean::noise_levels * noise_of(map), ShortClean::part_of_peak * std::abs(values[peak()]));
  for (std::int64_t i = 0; i < ShortClean::most_components; ++i) {
    const auto pixel = peak();
    if (std::abs(values[pixel]) < level) break;
    found.mutable_data_ptr<bool>()[pixel] = true;
    subtract_beam(values, beam.const_data_ptr<double>(), npix, pixel, ShortClean::loop_gain * values[pixel]);
  }
  return found;
}

}  // namespace

double median_noise(const Tensor& image) {
  constexpr double sigma_of_median = 1.4826;  // of |x|, for Gaussian noise
  return sigma_of_median * image.abs().median().item<double>();
}

WideImage::WideImage(const GridCoords& coords)
    : coords_(coords), cells_(static_cast<std::size_t>(coords.npix() * coords.npix())) {}

void WideImage::add(const Tensor& u, const Tensor& v, const Tensor& data, const Tensor& weights) {
  const auto npix = coords_.npix(), half = npix / 2;
  const double limit = coords_.max_uv();
  const auto values = data.contiguous();
  const auto packed = [&](double at) {
    const auto cell = coords_.uv_cell(at);
    return cell < half ? cell + half : cell - half;
  };
  const auto *us = u.const_data_ptr<double>(), *vs = v.const_data_ptr<double>(), *ws = weights.const_data_ptr<double>();
  const auto* value = values.const_data_ptr<c10::complex<double>>();
  for (std::int64_t i = 0; i < u.numel(); ++i) {
    if (!(std::abs(us[i]) < limit && std::abs(vs[i]) < limit)) continue;
    const auto cell = static_cast<std::size_t>(packed(vs[i]) * npix + packed(us[i]));
    const double real = value[i].real(), imag = value[i].imag();
    auto& sums = cells_[cell];
    sums.weight += ws[i];
    sums.real += ws[i] * real;
    sums.imag += ws[i] * imag;
    total_ += ws[i];
    power_ += ws[i] * (real * real + imag * imag);
    ++samples_;
  }
}

WideMap WideImage::map() const {
  const auto npix = coords_.npix();
  WideMap map{.coords = coords_, .image = {}, .beam = {}};
  const double scale = total_ > 0 ? 1 / total_ : 0;
  map.noise = std::sqrt(scale);
  map.scatter = scatter();
  std::vector<c10::complex<double>> sums, weights;
  sums.reserve(cells_.size());
  weights.reserve(cells_.size());
  for (const auto& [weight, real, imag] : cells_) {
    sums.emplace_back(real, imag);
    weights.emplace_back(weight, 0);
  }
  map.image = packed_to_sky(packed_image(std::move(sums), npix) * scale);
  map.beam = packed_image(std::move(weights), npix) * scale;
  return map;
}

std::optional<double> WideImage::scatter() const {
  constexpr double fewest = 100;
  double cells = 0, of_means = 0;
  for (const auto& [weight, real, imag] : cells_) {
    if (!(weight > 0)) continue;
    ++cells;
    of_means += (real * real + imag * imag) / weight;
  }
  const double freedom = 2 * (samples_ - cells);
  if (!(freedom >= fewest)) return std::nullopt;
  return std::sqrt(std::max(0.0, power_ - of_means) / freedom);
}

WideImage wide_image(const GridCoords& coords, const Visibilities& visibilities) {
  WideImage image(coords);
  for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
    for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += samples_of_block) {
      const auto block = visibilities.block(channel, begin, std::min(visibilities.nvis(), begin + samples_of_block));
      image.add(block.u, block.v, block.data, block.weights);
    }
  }
  return image;
}

WideMap wide_map(const GridCoords& coords, const Visibilities& visibilities) { return wide_image(coords, visibilities).map(); }

double extent_of_flux(const WideMap& map) {
  const auto found = found_flux(map);
  return at::where(found, map.coords.packed_x().abs().maximum(map.coords.packed_y().abs()), 0.0).max().item<double>();
}

FluxSquare square_of_flux(const WideMap& map) {
  const auto found = found_flux(map);
  if (!found.any().item<bool>()) return {};
  const auto x = map.coords.packed_x().expand_as(found).masked_select(found);
  const auto y = map.coords.packed_y().expand_as(found).masked_select(found);
  const double west = x.min().item<double>(), east = x.max().item<double>();
  const double south = y.min().item<double>(), north = y.max().item<double>();
  return {(west + east) / 2, (south + north) / 2, (std::max(east - west, north - south) + map.coords.cell_size()) / 2};
}

WidePeak peak_outside(const WideMap& map, double half_width) {
  const auto x = map.coords.sky_x(), y = map.coords.sky_y();
  const auto outside = at::where(x.abs().maximum(y.abs()) >= half_width, map.image, 0.0).flatten();
  const auto pixel = outside.abs().argmax().item<std::int64_t>();
  return {x.flatten()[pixel].item<double>(), y.flatten()[pixel].item<double>(), outside[pixel].item<double>()};
}

}  // namespace mpol
