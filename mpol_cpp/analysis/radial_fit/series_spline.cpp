#include <mpol_cpp/analysis/radial_fit/series_spline.h>

#include <cmath>
#include <vector>

#include <ATen/ops/arange.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr double knots_per_period = 64;
// What the missing B-splines beyond the last knot spoil falls by 0.27 from knot to knot.
constexpr std::int64_t knots_beyond = 24;
constexpr double most_numbers = 2.6e8;

/// Coefficients of the even cubic splines through values at the knots, in their place: c[k-1] + 4 c[k] + c[k+1] = 6 f[k], with
/// c[-1] = c[1] and none beyond the last. Thomas' algorithm on all columns together.
void interpolate(Tensor& values) {
  const auto knots = values.size(0), terms = values.size(1);
  auto* row = values.mutable_data_ptr<double>();
  std::vector<double> upper(static_cast<std::size_t>(knots));
  for (std::int64_t k = 0; k < knots; ++k, row += terms) {
    const double pivot = k == 0 ? 4 : 4 - upper[static_cast<std::size_t>(k - 1)];
    upper[static_cast<std::size_t>(k)] = (k == 0 ? 2 : 1) / pivot;
    for (std::int64_t i = 0; i < terms; ++i) row[i] = (6 * row[i] - (k == 0 ? 0 : (row - terms)[i])) / pivot;
  }
  row -= terms;
  for (std::int64_t k = knots - 2; k >= 0; --k) {
    row -= terms;
    for (std::int64_t i = 0; i < terms; ++i) row[i] -= upper[static_cast<std::size_t>(k)] * (row + terms)[i];
  }
}

}  // namespace

SeriesSpline spline_of(const FourierBesselSeries& series, double longest) {
  SeriesSpline spline;
  spline.spacing = 1 / (knots_per_period * series.radius() * units::arcsec);
  spline.longest = longest;
  const double knots = std::ceil(longest / spline.spacing) + static_cast<double>(knots_beyond);
  if (!(knots * static_cast<double>(series.count()) < most_numbers)) {
    throw ValueError(
        fmt::format("{} radii within {}\" for baselines of up to {:.4g} wavelengths need a table of {:.3g} numbers; "
                    "the limit is {:.3g}: take a smaller radius or fewer points",
                    series.count(), series.radius(), longest, knots * static_cast<double>(series.count()), most_numbers));
  }
  const auto q = at::arange(static_cast<std::int64_t>(knots), torch::kFloat64) * spline.spacing;
  spline.coefficients = series.transform(q).contiguous();
  interpolate(spline.coefficients);
  return spline;
}

}  // namespace mpol
