#include <mpol_cpp/analysis/residuals.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/data_averager.h>

namespace mpol {
namespace {

constexpr std::int64_t residual_block = 1 << 16;  // samples
constexpr double median_of_half_normal = 0.6744897501960817;
constexpr double lone_sample = 1e-9;  // 1 - w/W below which a sample is alone in its cell

/// Occupied cells with their sums, sorted by cell.
struct CellMeans {
  Tensor cells, averages, weights;
  std::int64_t find(std::int64_t cell) const {
    const auto* first = cells.const_data_ptr<std::int64_t>();
    return std::lower_bound(first, first + cells.numel(), cell) - first;
  }
};

std::int64_t packed_cell(const GridCoords& coords, std::int64_t channel, double u, double v) {
  const auto npix = coords.npix(), half = npix / 2;
  const auto column = (coords.uv_cell(u) + half) % npix, row = (coords.uv_cell(v) + half) % npix;
  return (channel * npix + row) * npix + column;
}

/// All values that count, |r| of real and imaginary parts, and their sums.
struct AbsoluteValues {
  explicit AbsoluteValues(std::int64_t samples) { magnitudes.reserve(2 * static_cast<std::size_t>(samples)); }

  void add(c10::complex<double> residual) {
    for (const double value : {residual.real(), residual.imag()}) {
      magnitudes.push_back(static_cast<float>(std::abs(value)));
      sum += value;
      sum_of_squares += value * value;
    }
  }

  ResidualStatistics statistics() {
    if (magnitudes.empty()) return {};
    const auto count = static_cast<double>(magnitudes.size());
    ResidualStatistics result{.samples = static_cast<std::int64_t>(magnitudes.size() / 2)};
    result.mean = sum / count;
    result.standard_deviation = std::sqrt(std::max(0.0, sum_of_squares / count - result.mean * result.mean));
    result.sigma_factor = median() / median_of_half_normal;
    const double limit = 4 * result.sigma_factor;
    result.beyond_four =
        static_cast<double>(std::count_if(magnitudes.begin(), magnitudes.end(), [limit](float value) { return value > limit; })) /
        count;
    return result;
  }

  std::vector<float> magnitudes;
  double sum = 0, sum_of_squares = 0;

 private:
  double median() {
    const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
    std::nth_element(magnitudes.begin(), middle, magnitudes.end());
    return (*std::max_element(magnitudes.begin(), middle) + *middle) / 2.0;  // their number is even
  }
};

/// Calls `visit(i, residual)` for all residuals but exact zeros, as they are held.
template <typename Visit>
void visit_residuals(const Tensor& residuals, const Visit& visit) {
  if (!residuals.is_complex()) throw ShapeError("the residuals are real; complex ones are needed");
  const auto values = residuals.detach().to(torch::kCPU).resolve_conj().contiguous();
  const auto visit_all = [&](const auto* value) {
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const c10::complex<double> residual(value[i]);
      if (residual != c10::complex<double>(0, 0)) visit(i, residual);
    }
  };
  if (values.scalar_type() == torch::kComplexFloat) visit_all(values.const_data_ptr<c10::complex<float>>());
  else visit_all(values.to(torch::kComplexDouble).const_data_ptr<c10::complex<double>>());
}

double normal_probability(double low, double high) {
  return 0.5 * (std::erf(high / std::numbers::sqrt2) - std::erf(low / std::numbers::sqrt2));
}

}  // namespace

Tensor cell_residuals(const GridCoords& coords, const Visibilities& visibilities) {
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  const CellMeans means{dataset->cells(), dataset->visibilities(), dataset->weights()};
  const auto* average = means.averages.const_data_ptr<c10::complex<double>>();
  const auto* total = means.weights.const_data_ptr<double>();
  const auto nvis = visibilities.nvis();
  auto residuals = at::zeros({visibilities.nchan(), nvis}, torch::kComplexFloat);
  for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
    auto* residual = residuals.mutable_data_ptr<c10::complex<float>>() + channel * nvis;
    at::parallel_for(0, (nvis + residual_block - 1) / residual_block, 1, [&](std::int64_t first, std::int64_t last) {
      for (auto begin = first * residual_block; begin < std::min(nvis, last * residual_block); begin += residual_block) {
        const auto end = std::min(nvis, begin + residual_block);
        const auto [u, v, data, weights] = visibilities.block(channel, begin, end);
        const auto *us = u.const_data_ptr<double>(), *vs = v.const_data_ptr<double>();
        const auto* samples = data.const_data_ptr<c10::complex<double>>();
        const auto* weight = weights.const_data_ptr<double>();
        for (std::int64_t i = 0; i < end - begin; ++i) {
          const auto cell = means.find(packed_cell(coords, channel, us[i], vs[i]));
          const double freedom = 1 - weight[i] / total[cell];
          if (freedom < lone_sample) continue;
          residual[begin + i] = c10::complex<float>((samples[i] - average[cell]) * std::sqrt(weight[i] / freedom));
        }
      }
    });
  }
  return residuals;
}

ResidualStatistics residual_statistics(const Tensor& residuals) {
  AbsoluteValues all(residuals.numel());
  visit_residuals(residuals, [&](std::int64_t, c10::complex<double> residual) { all.add(residual); });
  return all.statistics();
}

std::vector<GroupScatter> scatter_by_group(const Tensor& residuals, const Tensor& groups) {
  if (groups.dim() > residuals.dim()) {
    throw ShapeError(fmt::format("the groups have shape {}, the residuals {}; the first must broadcast to the second",
                                 groups.sizes().vec(), residuals.sizes().vec()));
  }
  for (std::int64_t d = 1; d <= groups.dim(); ++d) {
    if (groups.size(-d) == 1 || groups.size(-d) == residuals.size(-d)) continue;
    throw ShapeError(fmt::format("the groups have shape {}, the residuals {}; the first must broadcast to the second",
                                 groups.sizes().vec(), residuals.sizes().vec()));
  }
  if (residuals.numel() == 0) return {};
  // A view of one number for each row, as long as there is one; a copy otherwise.
  const auto row = residuals.dim() > 0 ? residuals.size(-1) : 1;
  const auto numbers = groups.to(torch::kCPU, torch::kInt64).expand(residuals.sizes()).reshape({-1, row});
  const auto number = numbers.accessor<std::int64_t, 2>();
  std::map<std::int64_t, std::int64_t> samples;
  for (std::int64_t r = 0; r < number.size(0); ++r) {
    for (std::int64_t i = 0; i < row; ++i) ++samples[number[r][i]];
  }
  std::map<std::int64_t, AbsoluteValues> by_group;
  for (const auto& [group, count] : samples) by_group.emplace(group, count);
  visit_residuals(residuals, [&](std::int64_t i, c10::complex<double> residual) {
    by_group.find(number[i / row][i % row])->second.add(residual);
  });
  std::vector<GroupScatter> result;
  result.reserve(by_group.size());
  for (auto& [group, all] : by_group) result.push_back({group, all.statistics()});
  return result;
}

ResidualHistogram residual_histogram(const Tensor& residuals, std::int64_t nbins, double limit) {
  if (nbins < 1 || !std::isfinite(limit) || limit <= 0) {
    throw ValueError(fmt::format("the histogram has {} bins up to {} sigma; both must be greater than 0", nbins, limit));
  }
  const double width = 2 * limit / static_cast<double>(nbins);
  ResidualHistogram histogram{.edges = at::linspace(-limit, limit, nbins + 1, torch::kFloat64), .density = {}, .expected = {}};
  histogram.density = at::zeros({nbins}, torch::kFloat64);
  histogram.expected = at::empty({nbins}, torch::kFloat64);
  auto* density = histogram.density.mutable_data_ptr<double>();
  double total = 0;
  visit_residuals(residuals, [&](std::int64_t, c10::complex<double> residual) {
    for (const double part : {residual.real(), residual.imag()}) {
      total += 1;
      if (!(std::abs(part) < limit)) continue;
      density[std::min(nbins - 1, static_cast<std::int64_t>((part + limit) / width))] += 1;
    }
  });
  if (total > 0) histogram.density /= total * width;
  const auto* edge = histogram.edges.const_data_ptr<double>();
  for (std::int64_t i = 0; i < nbins; ++i) histogram.expected[i] = normal_probability(edge[i], edge[i + 1]) / width;
  return histogram;
}

Visibilities scale_weights(const Visibilities& visibilities, const Tensor& factor) {
  const auto& weights = visibilities.weights();
  const auto scaled = (weights.to(torch::kFloat64) * factor.to(torch::kFloat64)).to(weights.scalar_type());
  Visibilities result(visibilities.baselines(), visibilities.data(), scaled);
  if (visibilities.frequencies().defined()) result.set_frequencies(visibilities.frequencies());
  result.set_observation(visibilities.observation());
  return result;
}

}  // namespace mpol
