#include <mpol_cpp/analysis/radial_fit/radial_sums.h>

#include <algorithm>
#include <cmath>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/analysis/disc_fit/sample_sums.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// Lengths of baselines in the plane of a disc, and the turn of its centre to the phase centre.
class DiscFrame {
 public:
  explicit DiscFrame(const DiscGeometry& geometry)
      : cos_angle_(std::cos(geometry.position_angle)),
        sin_angle_(std::sin(geometry.position_angle)),
        cos_inclination_(std::cos(geometry.inclination)),
        east_(2 * units::pi * units::arcsec * geometry.offset_east),
        north_(2 * units::pi * units::arcsec * geometry.offset_north) {}

  double length(double u, double v) const {
    return std::hypot((u * cos_angle_ - v * sin_angle_) * cos_inclination_, u * sin_angle_ + v * cos_angle_);
  }
  /// The real part of V exp(2 pi i (u East + v North)).
  double real(const Sample& sample) const {
    const double phase = sample.u * east_ + sample.v * north_;
    return sample.real * std::cos(phase) - sample.imag * std::sin(phase);
  }

 private:
  double cos_angle_, sin_angle_, cos_inclination_, east_, north_;
};

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

void add_sample(SplineSums& sums, const RadialSpline& knots, const DiscFrame& frame, const Sample& sample) {
  const double q = frame.length(sample.u, sample.v), weighted = sample.weight * frame.real(sample);
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
  const DiscFrame frame(geometry_);
  const SplineSums zero{.band = BandMatrix(band_.size()), .right = knots.coefficients};
  const double limit = spline_.longest * (1 + 1e-9);
  const auto sums = sum_over_samples(visibilities, zero, [&](SplineSums& own, const Sample& sample) {
    if (frame.length(sample.u, sample.v) <= limit) add_sample(own, knots, frame, sample);
    else own.longest = std::max(own.longest, frame.length(sample.u, sample.v));
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
