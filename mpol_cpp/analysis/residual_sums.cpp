#include <mpol_cpp/analysis/residual_sums.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>

namespace mpol {
namespace {

constexpr double half_normal_median = 0.6744897501960817;

}  // namespace

/// Exponent and first bits of a number, which order numbers > 0 as the numbers do.
std::size_t ResidualCounts::bin_of(double magnitude) {
  constexpr int dropped = std::numeric_limits<double>::digits - 1 - bits_of_bin;
  constexpr std::int64_t first = std::int64_t{std::numeric_limits<double>::max_exponent - 1 + first_octave} << bits_of_bin;
  const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(magnitude) >> dropped) - first;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(bits, 0, static_cast<std::int64_t>(magnitude_bins) - 1));
}

double ResidualCounts::lower_edge(std::size_t bin) {
  constexpr std::size_t of_octave = std::size_t{1} << bits_of_bin;
  const double within = static_cast<double>(bin % of_octave) / static_cast<double>(of_octave);
  return std::ldexp(1 + within, static_cast<int>(bin / of_octave) + first_octave);
}

void ResidualCounts::count(double value) {
  count_ += 1;
  sum_ += value;
  squares_ += value * value;
  magnitudes_[bin_of(std::abs(value))] += 1;
  const double bin = std::floor((value + histogram_limit) * histogram_bins / (2 * histogram_limit));
  if (bin >= 0 && bin < histogram_bins) values_[static_cast<std::size_t>(bin)] += 1;
}

void ResidualCounts::add(const Tensor& residual, const Tensor& weights) {
  const auto values = residual.contiguous(), given = weights.contiguous();
  const auto* value = values.const_data_ptr<c10::complex<double>>();
  const auto* weight = given.const_data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double root = std::sqrt(weight[i]);
    count(root * value[i].real());
    count(root * value[i].imag());
  }
}

void ResidualCounts::add(const ResidualCounts& more) {
  const auto add_all = [](auto& all, const auto& some) {
    std::transform(all.begin(), all.end(), some.begin(), all.begin(), std::plus<>());
  };
  add_all(magnitudes_, more.magnitudes_);
  add_all(values_, more.values_);
  count_ += more.count_;
  sum_ += more.sum_;
  squares_ += more.squares_;
}

double ResidualCounts::quantile(double part) const {
  double below = 0;
  for (std::size_t bin = 0; bin < magnitude_bins; ++bin) {
    if (below + magnitudes_[bin] < part * count_ || magnitudes_[bin] == 0) {
      below += magnitudes_[bin];
      continue;
    }
    const double within = (part * count_ - below) / magnitudes_[bin];
    return lower_edge(bin) + within * (lower_edge(bin + 1) - lower_edge(bin));
  }
  return 0;
}

ResidualStatistics ResidualCounts::statistics() const {
  if (!(count_ > 0)) return {};
  ResidualStatistics result{.samples = static_cast<std::int64_t>(count_ / 2)};
  result.mean = sum_ / count_;
  result.standard_deviation = std::sqrt(std::max(0.0, squares_ / count_ - result.mean * result.mean));
  result.sigma_factor = quantile(0.5) / half_normal_median;
  double beyond = 0;
  for (auto bin = bin_of(4 * result.sigma_factor) + 1; bin < magnitude_bins; ++bin) beyond += magnitudes_[bin];
  result.beyond_four = beyond / count_;
  return result;
}

ResidualHistogram ResidualCounts::histogram() const {
  ResidualHistogram histogram;
  histogram.edges = at::linspace(-histogram_limit, histogram_limit, histogram_bins + 1, torch::kFloat64);
  histogram.density = at::empty({static_cast<std::int64_t>(histogram_bins)}, torch::kFloat64);
  histogram.expected = at::empty_like(histogram.density);
  constexpr double width = 2 * histogram_limit / histogram_bins;
  for (std::size_t bin = 0; bin < histogram_bins; ++bin) {
    const double low = -histogram_limit + width * static_cast<double>(bin);
    const auto place = static_cast<std::int64_t>(bin);
    histogram.density.mutable_data_ptr<double>()[place] = count_ > 0 ? values_[bin] / (count_ * width) : 0;
    histogram.expected.mutable_data_ptr<double>()[place] =
        0.5 * (std::erf((low + width) / std::numbers::sqrt2) - std::erf(low / std::numbers::sqrt2)) / width;
  }
  return histogram;
}

}  // namespace mpol
