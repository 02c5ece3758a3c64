#include <mpol_cpp/crossval/scan.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>

namespace mpol {
namespace {

constexpr double same_c = 1e-6;  // relative

}  // namespace

double ScanPoint::score() const {
  double chi_squared = 0, samples = 0;
  for (const auto& fold : folds) chi_squared += fold.chi_squared, samples += fold.samples;
  return chi_squared / (2 * samples);
}

bool Scan::is_as_good(std::size_t point) const {
  if (point == chosen) return true;
  if (!std::isfinite(points[point].score())) return false;
  const auto difference = points[point].cells - points[chosen].cells;
  const auto count = static_cast<double>(difference.numel());
  const double sum = difference.sum().item<double>(), mean = sum / count;
  const double deviation = std::sqrt((difference - mean).square().mean().item<double>());
  return sum <= deviation * std::sqrt(count);
}

void Scan::choose() {
  if (points.empty()) throw ValueError("a scan without points has nothing to choose from");
  const auto less = [](const ScanPoint& a, const ScanPoint& b) { return a.score() < b.score(); };
  chosen = static_cast<std::size_t>(std::min_element(points.begin(), points.end(), less) - points.begin());
  if (!std::isfinite(best().score()))
    throw DivergedError("no fit of the cross-validation has a finite score: choose a smaller learning rate, or pogm");
}

std::vector<std::string> Scan::at_bound() const {
  std::vector<std::string> names;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    auto low = axes[axis].low, high = axes[axis].high;
    if (!axes[axis].values.empty()) {
      const auto [first, last] = std::minmax_element(axes[axis].values.begin(), axes[axis].values.end());
      low = *first, high = *last;
    }
    const double c = best().c[axis];
    if (low < high && (c <= low * (1 + same_c) || c >= high * (1 - same_c))) names.push_back(axes[axis].term);
  }
  return names;
}

bool Scan::is_flat() const {
  if (points.size() < 3) return false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!is_as_good(i)) return false;
  }
  return true;
}

Scan::Table Scan::table() const {
  Table table;
  table.names.push_back("point");
  for (const auto& axis : axes) {
    table.names.push_back("c_" + axis.term);
    table.names.push_back("lambda_" + axis.term);
  }
  for (const auto* name : {"fold", "score", "chi_squared", "samples", "epochs", "flux_jy", "nonzero_pixels", "as_good"})
    table.names.emplace_back(name);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double as_good = is_as_good(i) ? 1 : 0;
    for (std::size_t f = 0; f < points[i].folds.size(); ++f) {
      const auto& fold = points[i].folds[f];
      std::vector<double> row = {static_cast<double>(i)};
      for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        row.push_back(points[i].c[axis]);
        row.push_back(lambda(i, axis));
      }
      row.insert(row.end(), {static_cast<double>(f), fold.chi_squared / (2 * fold.samples), fold.chi_squared, fold.samples,
                             static_cast<double>(fold.epochs), fold.flux, static_cast<double>(fold.nonzero), as_good});
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace mpol
