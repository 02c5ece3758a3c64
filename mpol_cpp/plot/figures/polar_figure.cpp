#include <mpol_cpp/plot/figures/polar_figure.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

constexpr std::int64_t most_maps = 6;

std::string map_title(const PolarFigureOptions& options, std::int64_t channel, std::int64_t nchan) {
  if (nchan == 1) return options.title;
  auto title = fmt::format("channel {}", channel);
  if (options.frequencies.size() == static_cast<std::size_t>(nchan))
    title += fmt::format(", {:.6g} GHz", options.frequencies[static_cast<std::size_t>(channel)] / 1e9);
  return title;
}

/// A map of azimuth and radius on the scale of another panel.
ImagePanel match_panel(ImagePanel style, const Tensor& values, const std::string& title, const MatchFigure& match) {
  style.values = values;
  style.title = title;
  style.unit = match.unit;
  style.extent = {0, 360, match.inner, match.outer};
  style.x_label = "azimuth from the major axis, to the East (deg)";
  style.y_label = "radius (″)";
  style.height_of_width = 0.55;
  return style;
}

/// Scores by their angles from 0 to 360 degrees.
Curve score_curve(const Tensor& scores, double first, const std::string& label) {
  std::vector<std::pair<double, double>> points;
  const auto values = to_vector(scores);
  const double step = 360 / static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double angle = std::fmod(first + step * static_cast<double>(i), 360);
    points.emplace_back(angle < 0 ? angle + 360 : angle, values[i]);
  }
  std::sort(points.begin(), points.end());
  Curve curve{.label = label, .style = CurveStyle::line, .x = {}, .y = {}};
  for (const auto& [angle, score] : points) {
    curve.x.push_back(angle);
    curve.y.push_back(score);
  }
  return curve;
}

}  // namespace

std::vector<std::int64_t> shown_polar_channels(std::int64_t nchan) { return shown_channels(nchan, most_maps); }

Page polar_page(const Tensor& map, const PolarFigureOptions& options) {
  if (map.dim() != 3 || map.numel() == 0) {
    throw ShapeError(fmt::format("map of shape ({}) for a figure: expected (nchan, nr, nphi)", fmt::join(map.sizes(), ", ")));
  }
  const auto nchan = options.nchan > 0 ? options.nchan : map.size(0);
  const auto channels = shown_polar_channels(nchan);
  const auto panels = static_cast<std::int64_t>(channels.size());
  if (options.nchan > 0 && map.size(0) != panels) {
    throw ShapeError(
        fmt::format("maps of {} channels for a figure that shows {} of {}: give these", map.size(0), panels, options.nchan));
  }
  auto shown = map.detach().to(torch::kCPU, torch::kFloat64);
  if (options.nchan == 0) shown = shown.index_select(0, torch::tensor(channels));
  auto style = panel_style(shown);
  style.unit = options.unit;
  style.extent = {options.first, options.last, options.inner, options.outer};
  style.x_label = "azimuth from the major axis, to the East (deg)";
  style.y_label = "radius (″)";
  style.height_of_width = 0.62;
  Page page;
  page.columns = std::min<std::int64_t>(panels, panels == 4 ? 2 : 3);
  page.panel_width = panels == 1 ? 1000 : 640;
  page.panel_height = panels == 1 ? 660 : 430;
  if (nchan > 1) page.title = options.title;
  if (panels < nchan) page.title += fmt::format("{}{} of {} channels", page.title.empty() ? "" : ", ", panels, nchan);
  for (std::int64_t i = 0; i < panels; ++i) {
    auto panel = style;
    panel.values = shown[i];
    panel.title = map_title(options, channels[static_cast<std::size_t>(i)], nchan);
    page.panels.emplace_back(std::move(panel));
  }
  return page;
}

Page match_page(const MatchFigure& match) {
  if (match.image.dim() != 2 || match.image.numel() == 0 || match.model.sizes() != match.image.sizes() ||
      match.scores.dim() != 2) {
    throw ShapeError(fmt::format("maps of shape ({}) and ({}) for a figure of a match: expected (nr, nphi) each",
                                 fmt::join(match.image.sizes(), ", "), fmt::join(match.model.sizes(), ", ")));
  }
  const auto as_shown = [](const Tensor& map) { return map.detach().to(torch::kCPU, torch::kFloat64); };
  const auto image = as_shown(match.image), model = as_shown(match.model);
  const auto style = panel_style(image);
  const auto residual = image - model;
  CurvePanel scores;
  scores.title = "score of " + match.template_name;
  scores.x_label = "angle, North through East (deg)";
  scores.y_label = "score";
  scores.curves.push_back({"", CurveStyle::guide, {0, 360}, {0, 0}});
  const bool mirrors = match.scores.size(0) > 1;
  scores.curves.push_back(score_curve(match.scores[0], match.first_angle, mirrors ? "as it is" : ""));
  if (mirrors) scores.curves.push_back(score_curve(match.scores[1], match.first_mirrored_angle, "mirrored"));
  scores.x_range = {0, 360};
  return {.title = match.title,
          .columns = 2,
          .panels = {match_panel(style, image, "image", match),
                     match_panel(style, model, match.template_name + (match.mirrored ? ", mirrored" : ""), match),
                     match_panel(panel_style(residual, ColorScale::diverging), residual, "residual", match), scores},
          .panel_width = 760,
          .panel_height = 480};
}

}  // namespace mpol::plot
