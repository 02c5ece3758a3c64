#include <mpol_cpp/uncertainty/error_maps.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/quantile.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/gauss_conv_image.h>
#include <mpol_cpp/images/restore.h>

namespace mpol {
namespace {

constexpr double lower_percentile = 0.158655, upper_percentile = 0.841345;  // of a Gaussian, one standard deviation
constexpr std::int64_t most_numbers = 1 << 22;                              // that are smoothed or sorted at once

/// Row by row, as a quantile copies what it sorts.
void write_percentiles(const Tensor& differences, const Tensor& image, ErrorMaps& maps, std::int64_t channel) {
  const auto npix = image.size(-1), rows = std::max<std::int64_t>(1, most_numbers / (differences.size(0) * npix));
  const auto at_percentiles = at::tensor({lower_percentile, upper_percentile}, torch::kFloat64);
  for (std::int64_t row = 0; row < npix; row += rows) {
    const auto count = std::min(rows, npix - row);
    const auto ends = at::quantile(differences.narrow(1, row, count).to(torch::kFloat64), at_percentiles, 0);
    const auto own = image.narrow(0, row, count);
    maps.lower[channel].narrow(0, row, count).copy_(own + ends[0]);
    maps.upper[channel].narrow(0, row, count).copy_(own + ends[1]);
  }
}

/// Twice the radius at which the mean of a circular autocorrelation over angles first falls to half of what it is at 0.
double width_of(const Tensor& autocorrelation, double cell_size) {
  const auto npix = autocorrelation.size(-1), bins = npix / 2;
  const auto own = autocorrelation.contiguous();
  const auto* value = own.const_data_ptr<double>();
  if (!(value[0] > 0)) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sums(static_cast<std::size_t>(bins), 0.0), counts(sums.size(), 0.0);
  for (std::int64_t row = 0; row < npix; ++row) {
    for (std::int64_t column = 0; column < npix; ++column) {
      const auto y = static_cast<double>(std::min(row, npix - row)), x = static_cast<double>(std::min(column, npix - column));
      const auto bin = static_cast<std::size_t>(std::lround(std::hypot(x, y)));
      if (bin >= sums.size()) continue;
      sums[bin] += value[row * npix + column];
      counts[bin] += 1;
    }
  }
  double before = 1;
  for (std::size_t bin = 1; bin < sums.size(); ++bin) {
    const double here = sums[bin] / counts[bin] / value[0];
    if (here <= 0.5) return 2 * cell_size * (static_cast<double>(bin) - (0.5 - here) / (before - here));
    before = here;
  }
  return 2 * cell_size * static_cast<double>(bins);
}

/// The correlation length of the samples' differences from their mean.
double correlation_length(const Tensor& samples, double cell_size) {
  const auto mean = samples.mean(0);
  const auto npix = samples.size(-1);
  auto power = at::zeros_like(at::fft_rfft2(mean).abs());
  for (std::int64_t i = 0; i < samples.size(0); ++i) power.add_(at::fft_rfft2(samples[i] - mean).abs().square());
  return width_of(at::fft_irfft2(power, {{npix, npix}}).to(torch::kFloat64), cell_size);
}

/// Means over a Gaussian twice as wide as a beam; of a field too small for that, of the beam.
Tensor around(const Tensor& squares, const GridCoords& coords, const Beam& beam) {
  const double field = coords.cell_size() * static_cast<double>(coords.npix());
  const double times = 2 * beam.major < field / 2 ? 2 : 1;
  auto convolution = GaussConvImage(coords, Beam{times * beam.major, times * beam.minor, beam.position_angle});
  return convolution->forward(squares.unsqueeze(0)).squeeze(0);
}

/// The sum of squares over some pixels of differences (count, npix, npix) of Jy/arcsec^2, at the resolution of beams.
double squares_over(const Tensor& differences, const Tensor& pixels, const GridCoords& coords, const std::vector<Beam>& beam) {
  double sum = 0;
  for (std::int64_t i = 0; i < differences.size(0); ++i) {
    auto own = differences.narrow(0, i, 1).to(torch::kFloat64);
    if (!beam.empty()) own = restore(own, coords, beam);
    sum += (own[0].square() * pixels).sum().item<double>();
  }
  return sum;
}

/// ErrorMaps::error_factor of a channel. @param samples, refits  (…, npix, npix) of the channel
double shortfall(const Tensor& image, const Tensor& samples, const Tensor& refits, const Tensor& pixels, const GridCoords& coords,
                 const std::vector<Beam>& beam) {
  if (!refits.defined() || refits.size(0) == 0) return 1;
  const auto own = samples.narrow(0, 0, refits.size(0));
  const double first = squares_over(own - image.to(own.scalar_type()), pixels, coords, beam),
               second = squares_over(refits - own, pixels, coords, beam);
  return second > 0 ? std::max(1.0, std::sqrt(first / second)) : 1;
}

/// The share of an image's sum that lies where it is no larger than its error; 0 of an empty one.
double share_below(const Tensor& image, const Tensor& error) {
  const double sum = image.sum().item<double>();
  return sum > 0 ? at::where(image > error, at::zeros_like(image), image).sum().item<double>() / sum : 0;
}

void check_samples(const Tensor& sky, const Tensor& samples, const Tensor& refits) {
  if (refits.defined() && (refits.dim() != 4 || refits.size(0) > samples.size(0) || refits.sizes().slice(1) != sky.sizes())) {
    throw ShapeError(fmt::format("refits of shape {} of samples of shape {}: expected as many, or fewer", refits.sizes().vec(),
                                 samples.sizes().vec()));
  }
  if (samples.dim() != 4 || sky.dim() != 3 || samples.sizes().slice(1) != sky.sizes()) {
    throw ShapeError(fmt::format("samples of shape {} of an image of shape {}: expected (samples, nchan, npix, npix)",
                                 samples.sizes().vec(), sky.sizes().vec()));
  }
  if (samples.size(0) < 2) throw ValueError(fmt::format("{} samples tell no spread: take at least 2", samples.size(0)));
}

}  // namespace

Tensor ErrorMaps::signal_to_noise() const { return at::where(error > 0, image / error, at::zeros_like(image)); }

void ErrorMaps::put_channels(ErrorMaps some, std::int64_t first, std::int64_t nchan) {
  std::map<std::string, Tensor> maps;
  some.visit_maps([&](const char* name, const Tensor& map) { maps[name] = map; });
  visit_maps([&](const char* name, Tensor& all) {
    const auto& own = maps.at(name);
    if (!own.defined()) return;
    if (!all.defined()) all = at::zeros({nchan, own.size(-2), own.size(-1)}, own.options());
    all.narrow(0, first, own.size(0)).copy_(own);
  });
  std::vector<std::vector<double>> numbers;
  some.visit_numbers([&](const std::vector<double>& own) { numbers.push_back(own); });
  auto own = numbers.begin();
  visit_numbers([&](std::vector<double>& all) {
    all.resize(static_cast<std::size_t>(nchan));
    std::copy(own->begin(), own->end(), all.begin() + first);
    ++own;
  });
}

ErrorMaps error_maps(const Tensor& sky, const BootstrapSamples& fits, const GridCoords& coords, const std::vector<Beam>& beams,
                     MapsOfErrors which) {
  const torch::NoGradGuard no_grad;
  const auto& samples = fits.images;
  check_samples(sky, samples, fits.refits);
  const auto image = sky.detach().to(torch::kCPU, torch::kFloat64);
  const auto count = samples.size(0);
  ErrorMaps maps;
  maps.image = beams.empty() ? image : restore(image, coords, beams);
  maps.error = at::empty_like(maps.image);
  const bool all = which == MapsOfErrors::all;
  const auto number_of = [](const Tensor& numbers, std::int64_t channel, double otherwise) {
    return numbers.defined() ? numbers[channel].item<double>() : otherwise;
  };
  if (all) {
    for (auto* map : {&maps.mean, &maps.spread, &maps.lower, &maps.upper}) *map = at::empty_like(maps.image);
  }
  for (std::int64_t channel = 0; channel < sky.size(0); ++channel) {
    const auto own = samples.select(1, channel);
    const auto beam_of = [&] { return beams.size() <= 1 ? beams : std::vector{beams[static_cast<std::size_t>(channel)]}; };
    auto differences = all ? at::empty(own.sizes(), torch::kFloat32) : Tensor();
    auto flux = at::empty({count}, torch::kFloat64);
    auto mean = at::zeros_like(image[channel]), squares = at::zeros_like(mean);
    const auto at_once = std::max<std::int64_t>(1, most_numbers / image[channel].numel());
    for (std::int64_t first = 0; first < count; first += at_once) {
      const auto some = std::min(at_once, count - first);
      auto difference = own.narrow(0, first, some).to(torch::kFloat64) - image[channel];
      flux.narrow(0, first, some).copy_(difference.sum({-2, -1}) * coords.cell_area());
      if (!beams.empty()) difference = restore(difference.unsqueeze(1), coords, beam_of()).squeeze(1);
      if (all) differences.narrow(0, first, some).copy_(difference);
      mean.add_(difference.sum(0) / static_cast<double>(count));
      squares.add_(difference.square_().sum(0) / static_cast<double>(count));
    }
    maps.error[channel].copy_(
        (beams.empty() ? squares : at::maximum(squares, around(squares, coords, beam_of().front()))).sqrt());
    const auto refits = fits.refits.defined() ? fits.refits.select(1, channel) : Tensor();
    const auto shown = maps.image[channel].abs() > maps.error[channel];
    maps.error_factor.push_back(shortfall(image[channel], own, refits, shown, coords, beam_of()));
    maps.growth.push_back(number_of(fits.growth.share, channel, 0));
    maps.growth_width.push_back(number_of(fits.growth.width, channel, 0));
    const auto held = fits.growth.of_channel(channel, image[channel], coords);
    maps.error[channel]
        .mul_(maps.error_factor.back())
        .hypot_(beams.empty() ? held : restore(held.unsqueeze(0), coords, beam_of())[0]);
    maps.share_below_error.push_back(share_below(maps.image[channel].abs(), maps.error[channel]));
    if (all) {
      const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
      maps.mean[channel].copy_(maps.image[channel] + mean);
      maps.spread[channel].copy_(((squares - mean.square()).clamp_min(0) * unbiased).sqrt());
      write_percentiles(differences, maps.image[channel], maps, channel);
    }
    maps.flux_left.push_back(held.sum().item<double>() * coords.cell_area());
    const double unseen = 1 - number_of(fits.seen, channel, 1);
    maps.flux_unseen.push_back(unseen * unseen * image[channel].sum().item<double>() * coords.cell_area());
    maps.flux_error.push_back(
        std::hypot(std::sqrt(flux.square().mean().item<double>()), maps.flux_left.back(), maps.flux_unseen.back()));
    maps.flux_bias.push_back(flux.mean().item<double>());
    maps.correlation_length.push_back(correlation_length(own, coords.cell_size()));
  }
  return maps;
}

}  // namespace mpol
