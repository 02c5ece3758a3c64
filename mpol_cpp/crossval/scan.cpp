#include <mpol_cpp/crossval/scan.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <mpol_cpp/core/error.h>

namespace mpol {
namespace {

constexpr double same_c = 1e-6;  // relative

double mean_over(const std::vector<FoldScore>& folds, double FoldScore::*of) {
  double sum = 0;
  for (const auto& fold : folds) sum += fold.*of;
  return sum / static_cast<double>(folds.size());
}

/// What a score of white noise adds to chi^2, in units of chi^2: 0 with folds, whose data the fits have not seen.
double optimism(const ScanPoint& point) {
  if (point.kind == Score::folds) return 0;
  const auto& fit = point.folds.front();
  return 2 * fit.samples * point.score() - fit.chi_squared;
}

/// The point of the least value; nothing where none is finite.
template <class Value>
std::optional<std::size_t> least(const std::vector<ScanPoint>& points, const Value& value) {
  std::optional<std::size_t> found;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (const double own = value(points[i]); own < best) found = i, best = own;
  }
  return found;
}

}  // namespace

std::string to_string(Score score) {
  if (score == Score::folds) return "folds";
  return score == Score::sure ? "sure" : "gcv";
}

double ScanPoint::score() const {
  double chi_squared = 0, numbers = 0;
  for (const auto& fold : folds) chi_squared += fold.chi_squared, numbers += 2 * fold.samples;
  if (kind == Score::folds) return chi_squared / numbers;
  if (kind == Score::sure) return (chi_squared + 2 * degrees_of_freedom) / numbers;
  const double left = 1 - degrees_of_freedom / numbers;
  return left > 0 ? chi_squared / numbers / (left * left) : std::numeric_limits<double>::infinity();
}

double ScanPoint::train() const { return mean_over(folds, &FoldScore::train); }

double ScanPoint::penalty() const { return mean_over(folds, &FoldScore::penalty); }

bool Scan::is_as_good(std::size_t point) const {
  if (point == chosen) return true;
  if (!std::isfinite(points[point].score())) return false;
  const auto difference = points[point].cells - points[chosen].cells;
  const auto count = static_cast<double>(difference.numel());
  const double cells = difference.sum().item<double>(), mean = cells / count;
  const double sum = cells + optimism(points[point]) - optimism(points[chosen]);
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

std::optional<std::size_t> Scan::discrepancy() const {
  return least(points, [](const ScanPoint& point) {
    return point.train() > 0 ? std::abs(std::log(point.train())) : std::numeric_limits<double>::infinity();
  });
}

std::optional<std::size_t> Scan::l_curve_corner() const {
  if (points.size() < 3) return std::nullopt;
  return least(points, [](const ScanPoint& point) {
    const double product = point.train() * point.penalty();
    return product > 0 ? product : std::numeric_limits<double>::infinity();
  });
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
  for (const auto* name :
       {"fold", "score", "chi_squared", "samples", "epochs", "flux_jy", "nonzero_pixels", "as_good", "train_score", "penalty"}) {
    table.names.emplace_back(name);
  }
  const bool white = !points.empty() && points.front().kind != Score::folds;
  if (white) table.names.emplace_back("degrees_of_freedom");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double as_good = is_as_good(i) ? 1 : 0;
    for (std::size_t f = 0; f < points[i].folds.size(); ++f) {
      const auto& fold = points[i].folds[f];
      std::vector<double> row = {static_cast<double>(i)};
      for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        row.push_back(points[i].c[axis]);
        row.push_back(lambda(i, axis));
      }
      const double score = white ? points[i].score() : fold.chi_squared / (2 * fold.samples);
      row.insert(row.end(), {static_cast<double>(f), score, fold.chi_squared, fold.samples, static_cast<double>(fold.epochs),
                             fold.flux, static_cast<double>(fold.nonzero), as_good, fold.train, fold.penalty});
      if (white) row.push_back(points[i].degrees_of_freedom);
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace mpol
