#include <mpol_cpp/train/options/convergence_forecast.h>

#include <algorithm>
#include <cmath>

namespace mpol {
namespace {

constexpr std::size_t fewest_points = 3;
constexpr double least_power = 0.2;   // a slower way says nothing about its end
constexpr double most_epochs = 1e12;  // beyond which nobody waits

}  // namespace

void ConvergenceForecast::note(std::int64_t epochs, double excess) {
  if (epochs <= 0 || !std::isfinite(excess) || !(excess > 0)) return;
  points_.push_back({epochs, excess});
  std::erase_if(points_, [&](const Point& point) { return 2 * point.epochs < epochs; });
}

std::optional<std::int64_t> ConvergenceForecast::expected_end() const {
  if (points_.size() < fewest_points) return std::nullopt;
  const auto count = static_cast<double>(points_.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const auto& point : points_) {
    mean_x += std::log(static_cast<double>(point.epochs)) / count;
    mean_y += std::log(point.excess) / count;
  }
  for (const auto& point : points_) {
    const double x = std::log(static_cast<double>(point.epochs)) - mean_x;
    xx += x * x;
    xy += x * (std::log(point.excess) - mean_y);
  }
  const double power = -xy / xx;
  if (!(power >= least_power)) return std::nullopt;
  const double end = std::exp(mean_x + mean_y / power);
  const auto next = points_.back().epochs + 1;
  return end < most_epochs ? std::optional(std::max(next, static_cast<std::int64_t>(std::ceil(end)))) : std::nullopt;
}

}  // namespace mpol
