#include <mpol_cpp/analysis/radial_fit/radial_profile_model.h>

#include <algorithm>
#include <cmath>

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/radial_fit/series_spline.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/displacement.h>

namespace mpol {
namespace {

/// The spline with these coefficients at radii, which are differentiable too: the four B-splines that are not zero there.
Tensor evaluate_spline(const Tensor& coefficients, const Tensor& place) {
  const auto whole = place.detach().floor();
  const auto interval = whole.to(torch::kInt64);
  const auto t = place - whole, s = 1 - t;
  const auto of_knot = [&](const Tensor& knot) { return coefficients.index_select(0, knot.reshape({-1})).view(place.sizes()); };
  const auto middle = [](const Tensor& x) { return (4 - x.square() * (6 - 3 * x)) / 6; };
  return of_knot((interval - 1).abs()) * (s * s * s / 6) + of_knot(interval) * middle(t) + of_knot(interval + 1) * middle(s) +
         of_knot(interval + 2) * (t * t * t / 6);
}

/// Up to where a model of a fit is asked for while its geometry moves: a baseline is shorter in every geometry than it is itself.
double reach_of(const RadialProfileFit& fit) {
  constexpr double most = 2;  // at 60 degrees
  return fit.longest * std::min(1 / std::abs(std::cos(fit.geometry.inclination)), most);
}

}  // namespace

RadialProfileModelImpl::RadialProfileModelImpl(const FourierBesselSeries& series, const DiscGeometry& geometry, double longest)
    : series_(series),
      start_(geometry),
      start_brightness_(at::zeros({series.count()}, torch::kFloat64)),
      at_frequencies_(series.transform(series.frequencies())) {
  const auto spline = spline_of(series, longest);
  spacing_ = spline.spacing;
  longest_ = spline.longest;
  coefficients_ = spline.coefficients;
  reset();
}

RadialProfileModelImpl::RadialProfileModelImpl(const RadialProfileFit& fit)
    : RadialProfileModelImpl(fit.series, fit.geometry, reach_of(fit)) {
  start_brightness_ = fit.brightness;
  const torch::NoGradGuard no_gradient;
  brightness_.copy_(fit.brightness);
}

void RadialProfileModelImpl::reset() {
  const auto number = [](double value) { return at::scalar_tensor(value, torch::kFloat64); };
  coefficients_ = register_metadata("coefficients", coefficients_.variable_data());
  at_frequencies_ = register_metadata("at_frequencies", at_frequencies_.variable_data());
  brightness_ = register_parameter("brightness", start_brightness_.clone());
  inclination_ = register_parameter("inclination", number(start_.inclination));
  position_angle_ = register_parameter("position_angle", number(start_.position_angle));
  offset_ = register_parameter("offset", at::tensor({start_.offset_east, start_.offset_north}, torch::kFloat64));
}

Tensor RadialProfileModelImpl::visibilities(const Tensor& u, const Tensor& v) {
  constexpr double nowhere = 1e-20;  // keeps the slope of the length finite at baselines without one
  const auto angle = position_angle_.to(torch::kFloat64), shape = inclination_.to(torch::kFloat64).cos();
  const auto c = angle.cos(), s = angle.sin();
  const auto q = (((u * c - v * s) * shape).square() + (u * s + v * c).square() + nowhere).sqrt();
  if (u.numel() > 0) {
    const double longest = q.detach().max().item<double>();
    if (longest > longest_ * (1 + 1e-9) + spacing_) {
      throw ValueError(
          fmt::format("a deprojected baseline of {:.6g} wavelengths; the model was made for up to {:.6g}: name the longest "
                      "one when it is made",
                      longest, longest_));
    }
  }
  const auto profile = coefficients_.mv(brightness_.to(torch::kFloat64));
  const auto real = evaluate_spline(profile, q / spacing_) * shape;
  const auto phase = displacement_phase(u, v, offset_.to(torch::kFloat64));
  return (phase * real).to(c10::toComplexType(brightness_.scalar_type()));
}

Tensor RadialProfileModelImpl::negative_log_prior(const Tensor& power) const {
  const auto spectrum = at_frequencies_.mv(brightness_.to(torch::kFloat64));
  return (spectrum.square() / (2 * power.to(spectrum.device()))).sum().to(brightness_.scalar_type());
}

DiscGeometry RadialProfileModelImpl::geometry() const {
  const auto offset = offset_.detach().to(torch::kCPU).to(torch::kFloat64);
  return {inclination_.item<double>(), position_angle_.item<double>(), offset[0].item<double>(), offset[1].item<double>()};
}

}  // namespace mpol
