#include <mpol_cpp/plot/figures/profile_figure.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/ops/imag.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

constexpr double kilo_wavelengths = 1e3;
const char* const baseline_label = "deprojected baseline (kλ)";

/// Where the fit is drawn: fine enough for its fastest fringe.
Tensor model_baselines(const RadialProfileFit& fit) {
  constexpr std::int64_t least = 400, most = 4000;
  const auto fringes = static_cast<std::int64_t>(fit.longest / fit.series.frequencies()[0].item<double>());
  return at::linspace(0, fit.longest, std::min(most, std::max(least, 8 * fringes)), torch::kFloat64);
}

CurvePanel brightness_panel(const RadialProfileFit& fit) {
  const auto radius = to_vector(fit.series.radii()), brightness = to_vector(fit.brightness);
  CurvePanel panel;
  panel.x_label = "radius (″)";
  panel.y_label = "brightness (Jy/arcsec²)";
  panel.x_range = {0, fit.series.radius()};
  panel.curves = {{"", CurveStyle::guide, {0, fit.series.radius()}, {0, 0}},
                  {"", CurveStyle::band, radius, brightness, to_vector(fit.error()), 0},
                  {"", CurveStyle::line, radius, brightness, {}, 0}};
  return panel;
}

/// Bins that hold samples, of one part of the visibilities.
Curve observed_curve(const VisibilityProfile& observed, const Tensor& values, const Tensor& errors) {
  const auto filled = observed.samples[0] > 0;
  return {"data",
          CurveStyle::points,
          to_vector((observed.q / kilo_wavelengths).masked_select(filled)),
          to_vector(values.masked_select(filled)),
          to_vector(errors.masked_select(filled)),
          0};
}

CurvePanel part_panel(const std::string& label, const RadialProfileFit& fit, const Curve& observed) {
  CurvePanel panel;
  panel.x_label = baseline_label;
  panel.y_label = label;
  panel.curves = {{"", CurveStyle::guide, {0, fit.longest / kilo_wavelengths}, {0, 0}}, observed};
  return panel;
}

CurvePanel power_panel(const RadialProfileFit& fit, const Tensor& q, const Tensor& model, const VisibilityProfile& observed) {
  const auto shape = std::cos(fit.geometry.inclination);
  const auto mean = at::real(observed.mean[0]);
  auto data = observed_curve(observed, mean.square(), at::zeros_like(mean));
  data.error.clear();
  const double data_top = *std::max_element(data.y.begin(), data.y.end());
  CurvePanel panel;
  panel.x_label = baseline_label;
  panel.y_label = "power (Jy²)";
  panel.x_scale = panel.y_scale = AxisScale::logarithmic;
  panel.x_range = {0.5 * fit.series.frequencies()[0].item<double>() / kilo_wavelengths, fit.longest / kilo_wavelengths};
  // Below what the noise of the best bin can show, nulls of the fit and the end of the prior are of no interest.
  const auto squares = at::real(observed.error[0]).masked_select(observed.samples[0] > 0).square();
  const double top = std::max(fit.power.max().item<double>() * shape * shape, data_top);
  panel.y_range = {std::min(1e-2 * squares.min().item<double>(), 1e-4 * top), 10 * top};
  panel.curves = {data,
                  {"fit", CurveStyle::line, to_vector(q / kilo_wavelengths), to_vector(model.square()), {}, 1},
                  {"prior",
                   CurveStyle::dashes,
                   to_vector(fit.series.frequencies() / kilo_wavelengths),
                   to_vector(fit.power * (shape * shape)),
                   {},
                   2}};
  return panel;
}

}  // namespace

Page radial_page(const RadialProfileFit& fit, const VisibilityProfile& observed, const std::string& title) {
  const auto q = model_baselines(fit), model = fit.visibilities_at(q);
  const auto real_error = at::real(observed.error[0]);
  auto real = part_panel("Re V (Jy)", fit, observed_curve(observed, at::real(observed.mean[0]), real_error));
  real.curves.push_back({"fit", CurveStyle::line, to_vector(q / kilo_wavelengths), to_vector(model), {}, 1});
  // Most structure is at short baselines.
  real.x_scale = AxisScale::logarithmic;
  real.x_range = {0.5 * fit.series.frequencies()[0].item<double>() / kilo_wavelengths, fit.longest / kilo_wavelengths};
  real.curves.front().x.front() = (*real.x_range)[0];
  auto imag = part_panel("Im V (Jy)", fit, observed_curve(observed, at::imag(observed.mean[0]), real_error));
  imag.curves.back().label.clear();
  return {.title = title,
          .columns = 2,
          .panels = {brightness_panel(fit), real, power_panel(fit, q, model, observed), imag},
          .panel_width = 700,
          .panel_height = 460};
}

}  // namespace mpol::plot
