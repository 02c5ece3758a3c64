#include <mpol_cpp/analysis/residual_sums.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>

namespace mpol {
namespace {

constexpr double half_normal_median = 0.6744897501960817;

}  // namespace

void ResidualCounts::count(double value) {
  count_ += 1;
  sum_ += value;
  squares_ += value * value;
  const double place = bins_per_decade * (std::log10(std::max(std::abs(value), 1e-300)) - first_decade);
  magnitudes_[static_cast<std::size_t>(std::clamp(place, 0.0, magnitude_bins - 1.0))] += 1;
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
    return std::pow(10, (static_cast<double>(bin) + within) / bins_per_decade + first_decade);
  }
  return 0;
}

ResidualStatistics ResidualCounts::statistics() const {
  if (!(count_ > 0)) return {};
  ResidualStatistics result{.samples = static_cast<std::int64_t>(count_ / 2)};
  result.mean = sum_ / count_;
  result.standard_deviation = std::sqrt(std::max(0.0, squares_ / count_ - result.mean * result.mean));
  result.sigma_factor = quantile(0.5) / half_normal_median;
  const double limit = bins_per_decade * (std::log10(std::max(4 * result.sigma_factor, 1e-300)) - first_decade);
  const auto first = static_cast<std::size_t>(std::clamp(std::ceil(limit), 0.0, static_cast<double>(magnitude_bins)));
  double beyond = 0;
  for (auto bin = first; bin < magnitude_bins; ++bin) beyond += magnitudes_[bin];
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
