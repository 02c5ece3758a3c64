#include <mpol_cpp/plot/figures/geometry_figure.h>

#include <algorithm>
#include <array>
#include <vector>

#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>

#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

/// One part of a merged profile, without its empty bins; `range` is that of the page's row.
CurvePanel panel_of(const VisibilityProfile& profile, const Tensor& mean, const std::string& title, const std::string& x_label,
                    const std::string& y_label, const std::array<double, 2>& range) {
  const auto filled = profile.samples[0] > 0;
  const auto of_filled = [&filled](const Tensor& values) { return to_vector(values.masked_select(filled)); };
  const auto q = to_vector(profile.q / 1e3);
  CurvePanel panel;
  panel.title = title;
  panel.x_label = x_label;
  panel.y_label = y_label;
  panel.curves.push_back({"", CurveStyle::guide, {q.front(), q.back()}, {0, 0}});
  panel.curves.push_back(
      {"", CurveStyle::points, of_filled(profile.q / 1e3), of_filled(mean[0]), of_filled(at::real(profile.error)[0]), 0});
  panel.y_range = range;
  return panel;
}

/// What holds the values of both profiles, with a margin.
std::array<double, 2> range_of(const Tensor& before, const Tensor& after) {
  constexpr double margin = 0.08;
  const double low = std::min(before.min().item<double>(), after.min().item<double>());
  const double high = std::max(before.max().item<double>(), after.max().item<double>());
  const double room = margin * std::max(high - low, 1e-300);
  return {low - room, high + room};
}

}  // namespace

Page geometry_page(const GeometryProfile& profile, const std::string& title) {
  const auto &before = profile.before, &after = profile.after;
  const std::string observed = "baseline (kλ)", deprojected = "deprojected baseline (kλ)";
  const auto real_range = range_of(at::real(before.mean), at::real(after.mean));
  const auto imag_range = range_of(at::imag(before.mean), at::imag(after.mean));
  auto real_after = panel_of(after, at::real(after.mean), "centred and deprojected", deprojected, "Re V (Jy)", real_range);
  real_after.curves.push_back({"model", CurveStyle::line, to_vector(after.q / 1e3), to_vector(profile.model), {}, 1});
  return {.title = title,
          .columns = 2,
          .panels = {panel_of(before, at::real(before.mean), "as observed", observed, "Re V (Jy)", real_range), real_after,
                     panel_of(before, at::imag(before.mean), "", observed, "Im V (Jy)", imag_range),
                     panel_of(after, at::imag(after.mean), "", deprojected, "Im V (Jy)", imag_range)},
          .panel_width = 700,
          .panel_height = 420};
}

}  // namespace mpol::plot
