#include <mpol_cpp/visibilities/grid_suggestion.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr std::int64_t block_samples = 1 << 16;
constexpr double bins_per_e_fold = 50;  // a percentile to 2 %
constexpr std::int64_t fewest_pixels = 64, most_pixels = 4096;

/// Counts of baselines in logarithmic bins: a percentile without keeping the lengths.
class LengthHistogram {
 public:
  void add(double q) {
    const auto bin = static_cast<std::size_t>(std::clamp(bins_per_e_fold * std::log(q) + offset, 0.0, bins - 1.0));
    ++counts_[bin];
    ++total_;
  }
  double percentile(double fraction) const {
    double below = 0;
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
      below += static_cast<double>(counts_[bin]);
      if (below >= fraction * static_cast<double>(total_))
        return std::exp((static_cast<double>(bin) + 0.5 - offset) / bins_per_e_fold);
    }
    return 0;
  }
  /// Where the lengths go on above the last gap of such a factor that no more than a share of them lies below; 0: there is none.
  double above_gap(double factor, double most_below) const {
    const auto widest = static_cast<std::size_t>(std::ceil(bins_per_e_fold * std::log(factor)));
    double below = 0, found = 0;
    std::size_t since = 0;  // the last bin that is not empty
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
      if (counts_[bin] == 0) continue;
      if (below > most_below * static_cast<double>(total_)) break;
      if (below > 0 && bin - since > widest) found = std::exp((static_cast<double>(bin) - offset) / bins_per_e_fold);
      below += static_cast<double>(counts_[bin]);
      since = bin;
    }
    return found;
  }
  bool empty() const { return total_ == 0; }

 private:
  static constexpr double bins = 4000, offset = 1500;  // lengths from 1e-13 to 5e21 wavelengths
  std::array<std::int64_t, 4000> counts_ = {};
  std::int64_t total_ = 0;
};

/// The largest of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten that is not above the value.
double round_down(double value) {
  constexpr std::array steps = {8.0, 6.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.2, 1.0};
  const auto exponent = static_cast<int>(std::floor(std::log10(value)));
  for (const double step : steps) {
    const double rounded = number_of<double>(fmt::format("{}e{}", step, exponent)).value();
    if (rounded <= value) return rounded;
  }
  return std::pow(10.0, exponent);
}

bool has_small_factors(std::int64_t n) {
  for (const std::int64_t factor : {2, 3, 5}) {
    while (n % factor == 0) n /= factor;
  }
  return n == 1;
}

/// Calls visit(u, v) with each sample of each channel, wavelengths.
template <typename Visit>
void for_each_sample(const Baselines& baselines, const Visit& visit) {
  for (std::int64_t channel = 0; channel < baselines.nchan(); ++channel) {
    for (std::int64_t begin = 0; begin < baselines.nvis(); begin += block_samples) {
      const auto end = std::min(baselines.nvis(), begin + block_samples);
      const auto [u, v] = baselines.block(channel, begin, end);
      const auto* us = u.const_data_ptr<double>();
      const auto* vs = v.const_data_ptr<double>();
      for (std::int64_t i = 0; i < end - begin; ++i) visit(us[i], vs[i]);
    }
  }
}

}  // namespace

UvSummary summarize_uv(const Baselines& baselines) {
  UvSummary uv{.max_abs_u = baselines.max_abs_u(),
               .max_abs_v = baselines.max_abs_v(),
               .shortest = std::numeric_limits<double>::infinity()};
  LengthHistogram lengths;
  for_each_sample(baselines, [&](double u, double v) {
    const double q = std::hypot(u, v);
    uv.longest = std::max(uv.longest, q);
    if (q <= 0) return;
    uv.shortest = std::min(uv.shortest, q);
    lengths.add(q);
  });
  if (lengths.empty()) {
    uv.shortest = 0;
    return uv;
  }
  constexpr double gap = 10, most_below = 0.2;
  uv.short_end = lengths.percentile(0.05);
  uv.shortest_of_array = std::max(uv.shortest, lengths.above_gap(gap, most_below));
  return uv;
}

double shortest_baseline(const Baselines& baselines) {
  double least = std::numeric_limits<double>::infinity();
  for_each_sample(baselines, [&](double u, double v) {
    const double square = u * u + v * v;
    if (square > 0) least = std::min(least, square);
  });
  return std::isfinite(least) ? std::sqrt(least) : 0;
}

double suggested_cell_size(const UvSummary& uv) {
  const double fringe = 1 / (uv.longest * units::arcsec);
  return round_down(std::min(fringe / 5, 0.95 * maximum_cell_size(std::max(uv.max_abs_u, uv.max_abs_v), fewest_pixels)));
}

std::int64_t transform_size(double at_least) {
  auto n = static_cast<std::int64_t>(std::ceil(at_least / 2)) * 2;
  while (!has_small_factors(n)) n += 2;
  return n;
}

std::int64_t pixels_for(double width, double cell_size) {
  return transform_size(std::clamp(width / cell_size, static_cast<double>(fewest_pixels), static_cast<double>(most_pixels)));
}

}  // namespace mpol
