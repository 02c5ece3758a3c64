#include <mpol_cpp/analysis/radial_fit/radial_sums.h>

#include <algorithm>
#include <cmath>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/analysis/disc_fit/disc_plane.h>
#include <mpol_cpp/analysis/disc_fit/sample_sums.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

struct SplineSums {
  BandMatrix band;
  std::vector<double> right;
  double squares = 0, weight = 0, longest = 0;

  SplineSums& operator+=(const SplineSums& other) {
    band += other.band;
    for (std::size_t i = 0; i < right.size(); ++i) right[i] += other.right[i];
    squares += other.squares;
    weight += other.weight;
    longest = std::max(longest, other.longest);
    return *this;
  }
};

/// @param q     length of the sample's baseline in the plane of the disc
/// @param real  part of the visibility, with the disc in the middle
void add_sample(SplineSums& sums, const RadialSpline& knots, double q, double real, const Sample& sample) {
  const double weighted = sample.weight * real;
  const auto basis = knots.basis(q);
  sums.squares += sample.weight * (sample.real * sample.real + sample.imag * sample.imag);
  sums.weight += sample.weight;
  sums.longest = std::max(sums.longest, q);
  for (std::size_t i = 0; i < 4; ++i) {
    sums.right[static_cast<std::size_t>(basis.knot[i])] += weighted * basis.value[i];
    for (std::size_t j = 0; j < 4; ++j) {
      if (basis.knot[j] >= basis.knot[i])
        sums.band.at(basis.knot[i], basis.knot[j]) += sample.weight * basis.value[i] * basis.value[j];
    }
  }
}

}  // namespace

RadialSums::RadialSums(const FourierBesselSeries& series, const DiscGeometry& geometry, double longest)
    : geometry_(geometry), spline_(spline_of(series, longest)), band_(spline_.coefficients.size(0)) {
  constexpr double edge_on = 1e-3;
  const double shape = std::cos(geometry.inclination);
  if (!(std::abs(shape) > edge_on))
    throw ValueError(fmt::format("the inclination is {} degrees; a profile needs a disc that is not seen edge on",
                                 geometry.inclination / units::degree));
  right_.resize(static_cast<std::size_t>(band_.size()));
}

void RadialSums::add(const Visibilities& visibilities) {
  const RadialSpline knots{.spacing = spline_.spacing, .coefficients = std::vector<double>(right_.size())};
  const DiscPlane plane(geometry_);
  const SplineSums zero{.band = BandMatrix(band_.size()), .right = knots.coefficients};
  const double limit = spline_.longest * (1 + 1e-9);
  const auto sums = sum_over_samples(visibilities, zero, [&](SplineSums& own, const Sample& sample) {
    const double q = plane.at(sample.u, sample.v).length();
    if (q <= limit)
      add_sample(own, knots, q, CenteredVisibility(sample, geometry_.offset_east, geometry_.offset_north).real, sample);
    else own.longest = std::max(own.longest, q);
  });
  if (sums.longest > limit) {
    throw DataError(
        fmt::format("a deprojected baseline of {:.6g} wavelengths; the sums were made for up to {:.6g}: name the "
                    "longest one when they are made",
                    sums.longest, spline_.longest));
  }
  band_ += sums.band;
  for (std::size_t i = 0; i < right_.size(); ++i) right_[i] += sums.right[i];
  squares_ += sums.squares;
  weight_ += sums.weight;
  longest_ = std::max(longest_, sums.longest);
  samples_ += visibilities.nvis() * visibilities.nchan();
}

Tensor RadialSums::matrix() const {
  const auto& splines = spline_.coefficients;
  const auto knots = splines.size(0);
  auto product = at::zeros_like(splines);  // band times splines
  std::vector<double> diagonal(static_cast<std::size_t>(knots));
  for (std::int64_t offset = 0; offset < std::min<std::int64_t>(4, knots); ++offset) {
    const auto rows = knots - offset;
    for (std::int64_t k = 0; k < rows; ++k) diagonal[static_cast<std::size_t>(k)] = band_.at(k, k + offset);
    const auto factors = at::from_blob(diagonal.data(), {rows, 1}, torch::kFloat64);
    product.narrow(0, 0, rows).add_(factors * splines.narrow(0, offset, rows));
    if (offset > 0) product.narrow(0, offset, rows).add_(factors * splines.narrow(0, 0, rows));
  }
  const double shape = std::cos(geometry_.inclination);
  const auto matrix = splines.mT().matmul(product) * (shape * shape);
  return (matrix + matrix.mT()) / 2;
}

Tensor RadialSums::vector() const {
  auto right = right_;
  const auto sums = at::from_blob(right.data(), {band_.size()}, torch::kFloat64);
  return spline_.coefficients.mT().matmul(sums) * std::cos(geometry_.inclination);
}

}  // namespace mpol
