#include <mpol_cpp/analysis/spectral_slope.h>

#include <algorithm>
#include <cmath>

namespace mpol {
namespace {

/// An amplitude at the logarithm of its frequency.
struct Point {
  double x, amplitude, weight;
};

/// A exp(index x) by Gauss and Newton's method.
std::optional<SpectralSlope> fitted(const std::vector<Point>& points) {
  constexpr int most_steps = 50;
  constexpr double settled = 1e-9, largest_step = 3;
  double sum = 0, weights = 0;
  for (const auto& point : points) sum += point.weight * point.amplitude, weights += point.weight;
  double scale = sum / weights, index = 0;
  for (int step = 0; step < most_steps; ++step) {
    double aa = 0, ab = 0, bb = 0, ar = 0, br = 0;
    for (const auto& point : points) {
      const double power = std::exp(index * point.x), by_index = scale * point.x * power;
      const double rest = point.amplitude - scale * power;
      aa += point.weight * power * power;
      ab += point.weight * power * by_index;
      bb += point.weight * by_index * by_index;
      ar += point.weight * power * rest;
      br += point.weight * by_index * rest;
    }
    const double determinant = aa * bb - ab * ab;
    if (!(determinant > 0)) return std::nullopt;
    const double change = std::clamp((aa * br - ab * ar) / determinant, -largest_step, largest_step);
    scale += (bb * ar - ab * br) / determinant;
    index += change;
    if (!(scale > 0) || !std::isfinite(index)) return std::nullopt;
    if (std::abs(change) <= settled * (1 + std::abs(index))) return SpectralSlope{index, std::sqrt(aa / determinant), 0, 0};
  }
  return std::nullopt;
}

}  // namespace

void FrequencyAmplitudes::add(std::size_t group, const Tensor& model, const Tensor& data, const Tensor& weights) {
  auto& sums = sums_[group];
  const auto models = model.contiguous(), values = data.contiguous(), given = weights.contiguous();
  const auto* m = models.const_data_ptr<c10::complex<double>>();
  const auto* d = values.const_data_ptr<c10::complex<double>>();
  const auto* w = given.const_data_ptr<double>();
  for (std::int64_t i = 0; i < models.numel(); ++i) {
    sums.product += w[i] * (m[i].real() * d[i].real() + m[i].imag() * d[i].imag());
    sums.power += w[i] * (m[i].real() * m[i].real() + m[i].imag() * m[i].imag());
  }
  sums.seen += static_cast<double>(models.numel());
}

std::optional<SpectralSlope> FrequencyAmplitudes::slope() const {
  std::vector<Sums> known;
  for (const auto& group : sums_)
    if (group.power > 0 && group.frequency > 0) known.push_back(group);
  const auto [lowest, highest] =
      std::minmax_element(known.begin(), known.end(), [](const Sums& a, const Sums& b) { return a.frequency < b.frequency; });
  if (known.size() < 2 || !(highest->frequency > lowest->frequency)) return std::nullopt;
  const double middle = std::log(lowest->frequency * highest->frequency) / 2;
  std::vector<Point> points;
  points.reserve(known.size());
  for (const auto& group : known) {
    const double passes = group.seen / static_cast<double>(group.samples);
    points.push_back({std::log(group.frequency) - middle, group.product / group.power, group.power / passes});
  }
  auto slope = fitted(points);
  if (slope) slope->lowest = lowest->frequency, slope->highest = highest->frequency;
  return slope;
}

}  // namespace mpol
