#include <mpol_cpp/plot/figures/profile_figure.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

constexpr std::int64_t most_profiles = 7;  // as many as there are colours

/// The title, and how many channels of how many are drawn where some are not.
std::string page_title(const std::string& title, std::int64_t nchan) {
  if (nchan <= most_profiles) return title;
  return fmt::format("{}{}{} of {} channels", title, title.empty() ? "" : ", ", most_profiles, nchan);
}

/// How far out a profile is drawn: one and a half times the outermost ring above a fiftieth of the peak of any channel, so
/// that a wide empty field does not push the source into a corner.
double drawn_radius(const std::vector<double>& radius, const std::vector<std::vector<double>>& means) {
  double outermost = 0;
  for (const auto& mean : means) {
    double peak = 0;
    for (const double value : mean) peak = std::max(peak, std::abs(value));
    for (std::size_t i = 0; i < mean.size(); ++i)
      if (std::abs(mean[i]) > 0.02 * peak) outermost = std::max(outermost, radius[i]);
  }
  const double last = radius.empty() ? 1.0 : radius.back();
  return outermost > 0 ? std::min(last, 1.5 * outermost) : last;
}

std::string profile_label(std::int64_t channel, std::int64_t nchan) {
  return nchan == 1 ? std::string() : fmt::format("channel {}", channel);
}

/// One part of a visibility profile; empty bins are left out.
CurvePanel part_panel(const VisibilityProfile& profile, const Tensor& mean, const Tensor& error, const std::string& name) {
  CurvePanel panel;
  panel.x_label = "deprojected baseline (kλ)";
  panel.y_label = name + " (Jy)";
  const auto q = to_vector(profile.q / 1e3);
  panel.curves.push_back({"", CurveStyle::guide, {q.front(), q.back()}, {0, 0}});
  const auto nchan = mean.size(0);
  for (const auto c : shown_channels(nchan, most_profiles)) {
    const auto filled = profile.samples[c] > 0;
    const auto of_filled = [&filled](const Tensor& values) { return to_vector(values.masked_select(filled)); };
    panel.curves.push_back(
        {profile_label(c, nchan), CurveStyle::points, of_filled(profile.q / 1e3), of_filled(mean[c]), of_filled(error[c])});
  }
  return panel;
}

}  // namespace

Page profile_page(const BrightnessProfile& profile, const std::string& unit, const std::string& title,
                  std::optional<double> radius_shown) {
  CurvePanel panel;
  panel.x_label = "radius (″)";
  panel.y_label = unit;
  const auto nchan = profile.mean.size(0);
  const auto filled = profile.pixels > 0;
  const auto of_filled = [&filled](const Tensor& values) { return to_vector(values.masked_select(filled)); };
  const auto radius = of_filled(profile.radius);
  panel.curves.push_back({"", CurveStyle::guide, {0, radius.empty() ? 1 : radius.back()}, {0, 0}});
  std::size_t color = 0;
  std::vector<std::vector<double>> means;
  for (const auto c : shown_channels(nchan, most_profiles)) {
    const auto& mean = means.emplace_back(of_filled(profile.mean[c]));
    panel.curves.push_back({profile_label(c, nchan), CurveStyle::line, radius, mean, {}, color});
    panel.curves.push_back({"", CurveStyle::points, radius, mean, of_filled(profile.error[c]), color});
    ++color;
  }
  panel.x_range = {0, radius_shown.value_or(drawn_radius(radius, means))};
  const Page page{.title = page_title(title, nchan), .columns = 1, .panels = {panel}, .panel_width = 900, .panel_height = 640};
  return page;
}

Page profile_page(const VisibilityProfile& profile, const std::string& title) {
  const Page page{.title = page_title(title, profile.mean.size(0)),
                  .columns = 1,
                  .panels = {part_panel(profile, at::real(profile.mean), at::real(profile.error), "Re V"),
                             part_panel(profile, at::imag(profile.mean), at::imag(profile.error), "Im V")},
                  .panel_width = 900,
                  .panel_height = 420};
  return page;
}

}  // namespace mpol::plot
