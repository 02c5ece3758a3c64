#include <mpol_cpp/visibilities/grid_suggestion.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <ATen/ops/empty.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol {
namespace {

constexpr std::int64_t block_samples = 1 << 16;
constexpr double bins_per_e_fold = 50;  // a percentile to 2 %
constexpr std::int64_t fewest_pixels = 64, most_pixels = 4096;

/// Counts of baselines in logarithmic bins, a percentile without keeping the lengths, and their extremes.
class LengthHistogram {
 public:
  void add(double q) {
    longest_ = std::max(longest_, q);
    if (q <= 0) return;
    shortest_ = std::min(shortest_, q);
    const auto bin = static_cast<std::size_t>(std::clamp(bins_per_e_fold * std::log(q) + offset, 0.0, bins - 1.0));
    ++counts_[bin];
  }
  void add(const LengthHistogram& other) {
    longest_ = std::max(longest_, other.longest_);
    shortest_ = std::min(shortest_, other.shortest_);
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) counts_[bin] += other.counts_[bin];
  }
  double longest() const { return longest_; }
  double shortest() const { return shortest_; }  ///< infinite: there is none
  double percentile(double fraction) const {
    const auto wanted = fraction * total();
    double below = 0;
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
      below += counts_[bin];
      if (below >= wanted) return std::exp((static_cast<double>(bin) + 0.5 - offset) / bins_per_e_fold);
    }
    return 0;
  }
  /// Where the lengths go on above the last gap of such a factor that no more than a share of them lies below; 0: there is none.
  double above_gap(double factor, double most_below) const {
    const auto widest = static_cast<std::size_t>(std::ceil(bins_per_e_fold * std::log(factor)));
    const auto most = most_below * total();
    double below = 0, found = 0;
    std::size_t since = 0;  // the last bin that is not empty
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
      if (counts_[bin] == 0) continue;
      if (below > most) break;
      if (below > 0 && bin - since > widest) found = std::exp((static_cast<double>(bin) - offset) / bins_per_e_fold);
      below += counts_[bin];
      since = bin;
    }
    return found;
  }

  static constexpr std::int64_t numbers = 4002;
  /// All that is known, so many numbers.
  void write(double* to) const {
    *to++ = shortest_;
    *to++ = longest_;
    std::copy(counts_.begin(), counts_.end(), to);
  }
  static LengthHistogram read(const double* from) {
    LengthHistogram histogram;
    histogram.shortest_ = *from++;
    histogram.longest_ = *from++;
    std::copy_n(from, histogram.counts_.size(), histogram.counts_.begin());
    return histogram;
  }

 private:
  static constexpr double bins = 4000, offset = 1500;  // lengths from 1e-13 to 5e21 wavelengths
  double total() const { return std::accumulate(counts_.begin(), counts_.end(), 0.0); }

  std::array<double, numbers - 2> counts_ = {};  // whole
  double shortest_ = std::numeric_limits<double>::infinity(), longest_ = 0;
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

LengthHistogram lengths_of(const Baselines& baselines) {
  const auto blocks = (baselines.nvis() + block_samples - 1) / block_samples, tasks = baselines.nchan() * blocks;
  std::vector<LengthHistogram> lengths(static_cast<std::size_t>(at::get_num_threads()));
  ops::share_tasks(tasks, 1, [&](std::int64_t task, std::int64_t worker) {
    const auto begin = task % blocks * block_samples;
    const auto [u, v] = baselines.block(task / blocks, begin, std::min(baselines.nvis(), begin + block_samples));
    const auto *us = u.const_data_ptr<double>(), *vs = v.const_data_ptr<double>();
    auto& own = lengths[static_cast<std::size_t>(worker)];
    for (std::int64_t i = 0; i < u.size(0); ++i) own.add(std::hypot(us[i], vs[i]));
  });
  for (std::size_t worker = 1; worker < lengths.size(); ++worker) lengths.front().add(lengths[worker]);
  return lengths.front();
}

UvSummary summary_of(const LengthHistogram& lengths, double max_abs_u, double max_abs_v) {
  constexpr double gap = 10, most_below = 0.2;
  UvSummary uv{.max_abs_u = max_abs_u, .max_abs_v = max_abs_v, .longest = lengths.longest()};
  if (!std::isfinite(lengths.shortest())) return uv;
  uv.shortest = lengths.shortest();
  uv.short_end = lengths.percentile(0.05);
  uv.shortest_of_array = std::max(uv.shortest, lengths.above_gap(gap, most_below));
  return uv;
}

}  // namespace

UvSummary summarize_uv(const Baselines& baselines) {
  return summary_of(lengths_of(baselines), baselines.max_abs_u(), baselines.max_abs_v());
}

Tensor uv_row(const Baselines& baselines) {
  auto row = at::empty({1, 2 + LengthHistogram::numbers}, torch::kFloat64);
  auto* numbers = row.data_ptr<double>();
  numbers[0] = baselines.max_abs_u();
  numbers[1] = baselines.max_abs_v();
  lengths_of(baselines).write(numbers + 2);
  return row;
}

Tensor no_uv_rows() { return at::empty({0, 2 + LengthHistogram::numbers}, torch::kFloat64); }

UvSummary summarize_uv(const Tensor& rows) {
  if (rows.dim() != 2 || rows.size(1) != 2 + LengthHistogram::numbers || rows.scalar_type() != torch::kFloat64)
    throw ShapeError(fmt::format("rows of baselines have shape ({}); (parts, {}) is needed", fmt::join(rows.sizes(), ", "),
                                 2 + LengthHistogram::numbers));
  const auto all = rows.contiguous();
  LengthHistogram lengths;
  double max_abs_u = 0, max_abs_v = 0;
  for (std::int64_t part = 0; part < all.size(0); ++part) {
    const auto* numbers = all.const_data_ptr<double>() + part * all.size(1);
    max_abs_u = std::max(max_abs_u, numbers[0]);
    max_abs_v = std::max(max_abs_v, numbers[1]);
    lengths.add(LengthHistogram::read(numbers + 2));
  }
  return summary_of(lengths, max_abs_u, max_abs_v);
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
