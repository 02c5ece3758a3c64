#include <mpol_cpp/analysis/field/confined_flux.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/fft_fftshift.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/coordinates/orientation.h>

namespace mpol {
namespace {

/// The largest residuals that a CLEAN of a square leaves. Sidelobes and errors leave as much of one sign as of the other, a
/// source does not.
struct Rest {
  double inside, level;           // both signs
  double outside, outside_below;  // of the sign that the map's peak has, and of the other
  bool ends_at_noise;             // all above it was found, and what is left is no sidelobes

  bool is_confined(double peak) const {
    if (outside <= (ends_at_noise ? 1.4 : 2) * std::max(inside, level)) return true;
    const bool is_small = outside <= peak / 4, is_tiny = outside <= peak / 20;
    return (is_small && outside <= 1.1 * outside_below) || (is_tiny && outside <= 1.3 * outside_below);
  }
};

/// Pixels of a map whose phase centre is in its middle.
struct Box {
  std::int64_t top, bottom, left, right;  // the first row and column, and those behind the last

  Tensor of(const Tensor& image) const { return image.slice(0, top, bottom).slice(1, left, right); }
};

/// A CLEAN of a box of a map, all around which only tells what it leaves there.
class BoxedClean {
 public:
  explicit BoxedClean(const WideMap& map)
      : map_(map),
        image_(at::fft_fftshift(sky_to_packed(upright(map.image))).contiguous()),
        beams_(at::fft_fftshift(map.beam).repeat({1, 2}).contiguous()),
        transfer_(at::fft_rfft2(map.beam)),
        x_(at::fft_fftshift(map.coords.packed_x()[0])),
        y_(at::fft_fftshift(map.coords.packed_y().select(1, 0))),
        peak_(image_.max().item<double>()) {}

  double peak() const { return peak_; }
  bool is_empty() const { return peak_ < level(image_); }

  Rest within(double east, double north, double half_width) const {
    const auto [left, right] = range(x_, east, half_width);
    const auto [top, bottom] = range(y_, north, half_width);
    const Box box{top, bottom, left, right};
    auto flux = at::zeros_like(image_);
    auto residual = image_;
    double level = this->level(residual);
    for (std::int64_t left_over = ShortClean::most_components; left_over > 0;) {
      const auto used = clean(box, residual, flux, level, left_over);
      left_over -= used;
      residual = image_ - at::fft_irfft2(at::fft_rfft2(flux) * transfer_, image_.sizes());
      const double next = this->level(residual);  // the sidelobes of what was found are gone from the median
      const bool is_settled = next > 0.9 * level;
      level = next;
      if (used == 0 || is_settled) break;
    }
    const double inside = box.of(residual).abs().max().item<double>();
    auto around = residual.clone();
    box.of(around).zero_();
    constexpr double rounding = 1e-9;
    const bool ends_at_noise = level > ShortClean::part_of_peak * peak_ && inside <= (1 + rounding) * level;
    return {inside, level, around.max().item<double>(), -around.min().item<double>(), ends_at_noise};
  }

 private:
  static Tensor upright(const Tensor& image) { return (image.max() < -image.min()).item<bool>() ? -image : image; }
  /// How far residuals are looked at: five times the noise, 2 % of the peak.
  double level(const Tensor& residual) const {
    const double of_median = median_noise(residual);
    const double noise = map_.scatter ? std::min(of_median, *map_.scatter * map_.noise) : of_median;
    return std::max(ShortClean::noise_levels * std::max(noise, map_.noise), ShortClean::part_of_peak * peak_);
  }
  static std::pair<std::int64_t, std::int64_t> range(const Tensor& offsets, double center, double half_width) {
    const auto own = ((offsets - center).abs() <= half_width).nonzero();
    return {own.min().item<std::int64_t>(), own.max().item<std::int64_t>() + 1};
  }
  /// Moves what exceeds the level from the residual of a box to the flux. @return components
  std::int64_t clean(const Box& box, const Tensor& residual, const Tensor& flux, double level, std::int64_t most) const {
    const auto npix = image_.size(0), width = box.right - box.left, height = box.bottom - box.top;
    const auto own = box.of(residual).contiguous().clone();
    auto* value = own.mutable_data_ptr<double>();
    const auto* beams = beams_.const_data_ptr<double>();
    auto* sum = flux.mutable_data_ptr<double>();
    for (std::int64_t used = 0; used < most; ++used) {
      const auto brightest =
          std::max_element(value, value + width * height, [](double a, double b) { return std::abs(a) < std::abs(b); }) - value;
      const double found = ShortClean::loop_gain * value[brightest];
      if (std::abs(value[brightest]) < level) return used;
      const auto row = brightest / width, column = brightest % width;
      sum[(box.top + row) * npix + box.left + column] += found;
      for (std::int64_t y = 0; y < height; ++y) {
        const auto* beam = beams + (3 * npix / 2 + y - row) % npix * 2 * npix + (3 * npix / 2 - column) % npix;
        auto* line = value + y * width;
        for (std::int64_t x = 0; x < width; ++x) line[x] -= found * beam[x];
      }
    }
    return most;
  }

  const WideMap& map_;
  Tensor image_, beams_, transfer_, x_, y_;  // beams side by side, periodic, so that no row of one ends
  double peak_;
};

}  // namespace

double confining_half_width(const WideMap& map, double east, double north, double least) {
  constexpr double growth = 1.4, nearly_all = 0.9;
  const double half_map = map.coords.cell_size() * static_cast<double>(map.coords.npix()) / 2;
  if (!(map.noise > 0)) return 0;
  const BoxedClean clean(map);
  if (clean.is_empty()) return 0;
  double half = std::max(least, map.coords.cell_size());
  while (half < nearly_all * half_map && !clean.within(east, north, half).is_confined(clean.peak())) half *= growth;
  return half < nearly_all * half_map ? half : half_map;
}

}  // namespace mpol
