#include <mpol_cpp/calibration/gain_fit.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/real.h>

#include <mpol_cpp/calibration/shared_cells.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/prediction.h>

namespace mpol {
namespace {

/// What is needed of a block's samples.
struct BlockProducts {
  Tensor u, v;              // (n) wavelengths; where a shift is fitted
  Tensor products;          // (n) w conj(V) d, or their sum (1)
  Tensor shared;            // (n) the part of others in each sample's cell
  double model_power = 0;   // sum w |V|^2
  double shared_power = 0;  // the same times the part of others
  double data_power = 0;    // sum w |d|^2
  double samples = 0;
};

std::vector<BlockProducts> products_of(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                                       const ChannelMap& channels, const SampleBlocks& blocks, const GainKinds& kinds,
                                       const SharedCells& cells) {
  const auto count = static_cast<std::size_t>(blocks.size());
  std::vector<BlockProducts> all(count);
  std::vector<std::vector<Tensor>> u(count), v(count), products(count), shared(count);
  const auto use = [&](std::int64_t channel, std::int64_t begin, const Tensor& model) {
    const auto end = begin + model.size(0);
    const auto own = blocks.of(channel, begin, end);
    const auto order = own.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
    const auto counts = at::bincount(own, {}, blocks.size());
    const auto samples = visibilities.block(channel, begin, end);
    const auto others = cells.part_of_others(channel, begin, end);
    std::int64_t at = 0;
    for (std::size_t b = 0; b < count; ++b) {
      const auto size = counts[static_cast<std::int64_t>(b)].item<std::int64_t>();
      if (size == 0) continue;
      const auto picked = order.narrow(0, at, size);
      at += size;
      const auto pick = [&](const Tensor& values) { return values.index_select(0, picked); };
      const auto weights = pick(samples.weights), own_model = pick(model), data = pick(samples.data);
      auto product = own_model.conj() * data * weights;
      const auto power = weights * own_model.abs().square(), part = pick(others);
      all[b].model_power += power.sum().item<double>();
      all[b].shared_power += (power * part).sum().item<double>();
      all[b].data_power += (weights * data.abs().square()).sum().item<double>();
      all[b].samples += static_cast<double>(size);
      if (kinds.shift) u[b].push_back(pick(samples.u)), v[b].push_back(pick(samples.v)), shared[b].push_back(part);
      products[b].push_back(kinds.shift ? product : product.sum().unsqueeze(0));
    }
  };
  losses::for_each_prediction(coords, sky, visibilities, channels, use);
  for (std::size_t b = 0; b < count; ++b) {
    if (products[b].empty()) throw DataError(fmt::format("{} has no samples in the image's channels", blocks.names[b]));
    all[b].products = at::cat(products[b]);
    if (kinds.shift) all[b].u = at::cat(u[b]), all[b].v = at::cat(v[b]), all[b].shared = at::cat(shared[b]);
  }
  return all;
}

/// C of a shift with its derivatives, in arcsec.
struct Correlation {
  double value = 0, east = 0, north = 0;
  double east_east = 0, east_north = 0, north_north = 0;

  double determinant() const { return east_east * north_north - east_north * east_north; }
  bool is_peaked() const { return east_east < 0 && determinant() > 0; }
};

/// @param products  those of the block, or times the part of each that counts
Correlation correlation_at(const BlockProducts& block, const SkyOffset& shift, const Tensor& products) {
  constexpr double turn = 2 * units::pi * units::arcsec;
  Correlation c;
  if (!block.u.defined()) {
    c.value = at::real(products.sum()).item<double>();
    return c;
  }
  const auto angle = (block.u * (turn * shift.east) + block.v * (turn * shift.north));
  const auto turned = products * at::polar(at::ones_like(angle), angle);
  const auto real = at::real(turned), imaginary = at::imag(turned);
  const auto u = block.u * turn, v = block.v * turn;
  c.value = real.sum().item<double>();
  c.east = -(u * imaginary).sum().item<double>();
  c.north = -(v * imaginary).sum().item<double>();
  c.east_east = -(u * u * real).sum().item<double>();
  c.east_north = -(u * v * real).sum().item<double>();
  c.north_north = -(v * v * real).sum().item<double>();
  return c;
}
Correlation correlation_at(const BlockProducts& block, const SkyOffset& shift) {
  return correlation_at(block, shift, block.products);
}

struct Peak {
  SkyOffset shift;
  Correlation correlation;
};

/// Uphill from a shift to the top of C by Newton's method, with half steps where a whole one leads down.
Peak climb(const BlockProducts& block, SkyOffset shift) {
  constexpr int most_steps = 30, most_halves = 12;
  constexpr double enough = 1e-12;  // of C
  auto here = correlation_at(block, shift);
  for (int step = 0; step < most_steps && here.is_peaked(); ++step) {
    double east = -(here.north_north * here.east - here.east_north * here.north) / here.determinant();
    double north = -(here.east_east * here.north - here.east_north * here.east) / here.determinant();
    const double gain = 0.5 * (here.east * east + here.north * north);
    if (!(gain > enough * std::abs(here.value))) break;
    Correlation there;
    int half = 0;
    for (; half < most_halves; ++half, east /= 2, north /= 2) {
      there = correlation_at(block, {shift.east + east, shift.north + north});
      if (there.value > here.value) break;
    }
    if (half == most_halves) break;
    shift = {shift.east + east, shift.north + north};
    here = there;
  }
  return {shift, here};
}

/// The pixel of the field where C is largest.
SkyOffset brightest_shift(const GridCoords& coords, const BlockProducts& block) {
  const Nufft nufft(coords, Baselines::in_lambda(block.u, block.v), 1, NufftOptions{1e-6});
  const auto pixel = nufft->adjoint(block.products.unsqueeze(0)).argmax().item<std::int64_t>();
  const auto npix = coords.npix(), half = npix / 2, row = pixel / npix, column = pixel % npix;
  return {static_cast<double>(half - 1 - column) * coords.cell_size(), static_cast<double>(row - half) * coords.cell_size()};
}

/// By how much a value of C is better in chi^2 than another one, where the amplitude is fitted or given.
double improvement(const BlockProducts& block, const BlockGain& gain, const GainKinds& kinds, double better, double worse) {
  const auto least = [&](double c) {
    return kinds.amplitude ? -c * std::max(c, 0.0) / block.model_power : -2 * gain.amplitude * c;
  };
  return gain.weight_scale * (least(worse) - least(better));
}

Peak best_shift(const GridCoords& coords, const BlockProducts& block, const BlockGain& gain, const GainKinds& kinds) {
  constexpr double clear = 25;  // of chi^2: five sigma
  const SkyOffset start{gain.east, gain.north};
  if (!kinds.shift) return {start, correlation_at(block, start)};
  const auto near = climb(block, start);
  const auto far = climb(block, brightest_shift(coords, block));
  return improvement(block, gain, kinds, far.correlation.value, near.correlation.value) > clear ? far : near;
}

/// What a block knows of its shift, in arcsec^-2, and of ln a: the inverse variances.
double knowledge_of_shift(const FittedGain& fit, const Correlation& c) {
  return -0.5 * fit.gain.weight_scale * fit.gain.amplitude * (c.east_east + c.north_north);
}
double knowledge_of_amplitude(const FittedGain& fit, const BlockProducts& block) {
  return fit.gain.weight_scale * fit.gain.amplitude * fit.gain.amplitude * block.model_power;
}

/// Makes the weighted means of shift and ln a zero.
void fix_gauge(std::vector<FittedGain>& fits, const std::vector<BlockProducts>& blocks, const std::vector<Peak>& peaks,
               const GainKinds& kinds) {
  double of_shift = 0, east = 0, north = 0, of_amplitude = 0, logarithm = 0;
  for (std::size_t b = 0; b < fits.size(); ++b) {
    const double shift = knowledge_of_shift(fits[b], peaks[b].correlation),
                 amplitude = knowledge_of_amplitude(fits[b], blocks[b]);
    of_shift += shift, east += shift * fits[b].gain.east, north += shift * fits[b].gain.north;
    of_amplitude += amplitude, logarithm += amplitude * std::log(fits[b].gain.amplitude);
  }
  for (auto& fit : fits) {
    if (kinds.shift && of_shift > 0) fit.gain.east -= east / of_shift, fit.gain.north -= north / of_shift;
    if (kinds.amplitude && of_amplitude > 0) fit.gain.amplitude /= std::exp(logarithm / of_amplitude);
  }
}

/// The weight scale, chi^2 and errors of a block whose other gains are known.
void finish_gain(FittedGain& fit, const BlockProducts& block, const GainKinds& kinds) {
  auto& gain = fit.gain;
  const auto c = correlation_at(block, {gain.east, gain.north});
  fit.samples = block.samples;
  fit.chi_squared = gain.amplitude * gain.amplitude * block.model_power - 2 * gain.amplitude * c.value + block.data_power;
  if (kinds.weight_scale && fit.chi_squared > 0) {
    gain.weight_scale = 2 * block.samples / fit.chi_squared;
    fit.error.weight_scale = gain.weight_scale / std::sqrt(block.samples);
  }
  fit.significance = c.value * std::sqrt(gain.weight_scale / block.model_power);
  if (kinds.amplitude) fit.error.amplitude = 1 / std::sqrt(gain.weight_scale * block.shared_power);
  if (!kinds.shift) return;
  const auto known = correlation_at(block, {gain.east, gain.north}, block.products * block.shared);
  const double scale = gain.weight_scale * gain.amplitude;
  const double unknown = std::numeric_limits<double>::infinity();
  fit.error.east = known.is_peaked() ? std::sqrt(-known.north_north / known.determinant() / scale) : unknown;
  fit.error.north = known.is_peaked() ? std::sqrt(-known.east_east / known.determinant() / scale) : unknown;
}

/// The width of uv cells in which visibilities of an image change little: 1/(8 r), with the rms extent r of its flux along an
/// axis, at least that of a pixel.
double cell_width(const GridCoords& coords, const Tensor& sky) {
  const auto image = sky.detach().to(torch::kCPU, torch::kFloat64).clamp_min(0).sum(0);
  const double flux = image.sum().item<double>();
  if (!(flux > 0)) return coords.du();
  double variance = 0;
  for (const auto& axis : {coords.sky_x(), coords.sky_y()}) {
    const double mean = (image * axis).sum().item<double>() / flux;
    variance += 0.5 * (image * (axis - mean).square()).sum().item<double>() / flux;
  }
  return 1 / (8 * std::sqrt(std::max(variance, coords.cell_area() / 12)) * units::arcsec);
}

}  // namespace

std::vector<FittedGain> fit_gains(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                                  const ChannelMap& channels, const SampleBlocks& blocks, const GainKinds& kinds,
                                  const std::vector<BlockGain>& start) {
  blocks.check(visibilities.nchan(), visibilities.nvis());
  if (blocks.size() < 2)
    throw ValueError(fmt::format("gains are relative to each other: of {} blocks there are none", blocks.size()));
  if (!kinds.any()) throw ValueError("none of shift, amplitude and weight_scale is to be fitted");
  if (static_cast<std::int64_t>(start.size()) != blocks.size())
    throw ValueError(fmt::format("{} starts for {} blocks", start.size(), blocks.size()));
  const SharedCells cells(visibilities, blocks, cell_width(coords, sky));
  const auto products = products_of(coords, sky, visibilities, channels, blocks, kinds, cells);
  std::vector<FittedGain> fits(start.size());
  std::vector<Peak> peaks;
  for (std::size_t b = 0; b < fits.size(); ++b) {
    const auto& block = products[b];
    auto& gain = fits[b].gain = start[b];
    peaks.push_back(best_shift(coords, block, gain, kinds));
    if (kinds.shift) gain.east = peaks[b].shift.east, gain.north = peaks[b].shift.north;
    if (!kinds.amplitude) continue;
    const double amplitude = peaks[b].correlation.value / block.model_power;
    if (!(amplitude > 0)) {
      throw DataError(
          fmt::format("the data of {} do not follow the image: their amplitude is {:.3g} times the model's; leave the "
                      "block out, or its amplitude as it is",
                      blocks.names[b], amplitude));
    }
    gain.amplitude = amplitude;
  }
  fix_gauge(fits, products, peaks, kinds);
  for (std::size_t b = 0; b < fits.size(); ++b) {
    finish_gain(fits[b], products[b], kinds);
    fits[b].shared = cells.shared()[b];
  }
  return fits;
}

}  // namespace mpol
