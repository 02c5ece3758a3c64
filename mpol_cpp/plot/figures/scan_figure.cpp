#include <mpol_cpp/plot/figures/scan_figure.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::plot {
namespace {

constexpr std::size_t most_images = 12, curves_of_panel = 7;

void check_points(const Scan& scan) {
  if (scan.points.empty()) throw ValueError("a figure of a cross-validation needs a point");
}

std::string c_words(const Scan& scan, const std::vector<double>& c, std::size_t without) {
  std::string words;
  for (std::size_t axis = 0; axis < c.size(); ++axis) {
    if (axis == without) continue;
    words += fmt::format("{}{} {:.3g}", words.empty() ? "" : ", ", scan.axes[axis].term, c[axis]);
  }
  return words;
}

/// The points that differ in one c alone, by the words of the others, each in the order of that c.
std::map<std::string, std::vector<std::size_t>> lines_along(const Scan& scan, std::size_t axis) {
  std::map<std::string, std::vector<std::size_t>> lines;
  for (std::size_t i = 0; i < scan.points.size(); ++i) {
    if (std::isfinite(scan.points[i].score())) lines[c_words(scan, scan.points[i].c, axis)].push_back(i);
  }
  for (auto& [words, line] : lines) {
    std::sort(line.begin(), line.end(),
              [&](std::size_t a, std::size_t b) { return scan.points[a].c[axis] < scan.points[b].c[axis]; });
  }
  return lines;
}

std::string y_words(const Scan& scan) {
  switch (scan.best().kind) {
    case Score::folds:
      return "χ²/2N of the held-out data";
    case Score::sure:
      return "(χ² + 2 df)/2N";
    case Score::gcv:
      return "(χ²/2N)/(1 − df/2N)²";
  }
  return {};
}

/// Misfit against penalty of all points, with those that are chosen, of the discrepancy and of the corner.
CurvePanel l_curve_panel(const Scan& scan) {
  CurvePanel panel;
  panel.title = "L-curve: a diagnostic";
  panel.x_label = "Σ U R";
  panel.y_label = "χ²/2N of the fitted data";
  Curve all{"", CurveStyle::points, {}, {}};
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const auto& point : scan.points) {
    if (!(point.penalty() > 0 && std::isfinite(point.score()))) continue;
    all.x.push_back(point.penalty());
    all.y.push_back(point.train());
    low = std::min(low, point.penalty());
    high = std::max(high, point.penalty());
  }
  if (!(low < high)) return panel;
  constexpr double wide = 10;
  const auto scale_of = [&](const std::vector<double>& values) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return *most > wide * *least ? AxisScale::logarithmic : AxisScale::linear;
  };
  panel.x_scale = scale_of(all.x);
  panel.y_scale = scale_of(all.y);
  panel.curves.push_back({"", CurveStyle::guide, {low, high}, {1, 1}});
  panel.curves.push_back(std::move(all));
  std::map<std::size_t, std::string> marks;  // those of one point share a mark
  const auto mark = [&](const char* words, std::optional<std::size_t> point) {
    if (point) marks[*point] += (marks[*point].empty() ? "" : ", ") + std::string(words);
  };
  mark("chosen", scan.chosen);
  mark("χ²/2N nearest 1", scan.discrepancy());
  mark("L-curve's corner", scan.l_curve_corner());
  for (const auto& [point, words] : marks)
    panel.curves.push_back({words, CurveStyle::points, {scan.points[point].penalty()}, {scan.points[point].train()}});
  return panel;
}

CurvePanel axis_panel(const Scan& scan, std::size_t axis) {
  CurvePanel panel;
  panel.x_label = fmt::format("c of {} (U = {:.3g})", scan.axes[axis].term, scan.axes[axis].unit);
  panel.y_label = y_words(scan);
  panel.x_scale = AxisScale::logarithmic;
  const auto lines = lines_along(scan, axis);
  const auto chosen_line = c_words(scan, scan.best().c, axis);
  for (const auto& [words, line] : lines) {
    if (words != chosen_line && (line.size() < 2 || panel.curves.size() >= curves_of_panel - 1)) continue;
    Curve curve{words, CurveStyle::line, {}, {}};
    for (const auto i : line) {
      curve.x.push_back(scan.points[i].c[axis]);
      curve.y.push_back(scan.points[i].score());
    }
    auto marks = curve;
    marks.label.clear();
    marks.style = CurveStyle::points;
    curve.color = marks.color = panel.curves.size() / 2;
    panel.curves.push_back(std::move(curve));
    panel.curves.push_back(std::move(marks));
  }
  double low = scan.best().score(), high = low;
  for (const auto& curve : panel.curves) {
    for (const double y : curve.y) low = std::min(low, y), high = std::max(high, y);
  }
  const double c = scan.best().c[axis];
  panel.curves.push_back({"chosen", CurveStyle::dashes, {c, c}, {low, high}, {}, curves_of_panel - 1});
  return panel;
}

/// Half the width of the square around the phase centre that holds what is brighter than a fiftieth of the peak, and half as much
/// again; arcsec.
double shown_half_width(const Tensor& image, const GridCoords& coords) {
  const auto bright = (image > image.max() * 0.02).nonzero();
  const double field = coords.cell_size() * static_cast<double>(coords.npix()) / 2;
  if (bright.numel() == 0) return field;
  const auto farthest = (bright - coords.npix() / 2).abs().max().item<std::int64_t>();
  return std::min(field, 1.5 * coords.cell_size() * static_cast<double>(farthest + 1));
}

}  // namespace

Page scan_page(const Scan& scan) {
  check_points(scan);
  Page page;
  page.title = scan.best().kind == Score::folds  ? fmt::format("{} folds, {}", scan.best().folds.size(), scan.folds_kind)
               : scan.best().kind == Score::sure ? std::string("Stein's unbiased risk")
                                                 : std::string("generalized cross-validation");
  for (std::size_t axis = 0; axis < scan.axes.size(); ++axis) page.panels.emplace_back(axis_panel(scan, axis));
  if (auto panel = l_curve_panel(scan); !panel.curves.empty()) page.panels.emplace_back(std::move(panel));
  page.columns = std::min<std::int64_t>(static_cast<std::int64_t>(page.panels.size()), 3);
  return page;
}

Page gallery_page(const Scan& scan, const GridCoords& coords) {
  check_points(scan);
  std::vector<std::size_t> shown(scan.points.size());
  std::iota(shown.begin(), shown.end(), 0);
  std::stable_sort(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) {
    if ((a == scan.chosen) != (b == scan.chosen)) return a == scan.chosen;
    return scan.points[a].score() < scan.points[b].score();
  });
  shown.resize(std::min(shown.size(), most_images));
  std::sort(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) { return scan.points[a].c < scan.points[b].c; });

  auto style = panel_style(scan.best().image);
  style.norm.stretch = Stretch::power;  // haze is what many images differ by
  const double half_width = shown_half_width(scan.best().image, coords);
  Page page;
  const std::string images_of = scan.best().kind == Score::folds ? "mean images of the folds" : "images of all data";
  page.title = shown.size() == scan.points.size()
                   ? images_of
                   : fmt::format("{}, {} of {} points", images_of, shown.size(), scan.points.size());
  page.columns = std::min<std::int64_t>(4, static_cast<std::int64_t>(shown.size()));
  page.panel_width = 420;
  page.panel_height = 340;
  for (const auto i : shown) {
    auto panel = style;
    panel.values = scan.points[i].image;
    panel.extent = coords.img_ext();
    crop(panel, half_width);
    panel.unit = "Jy/arcsec²";
    const auto place = static_cast<std::int64_t>(page.panels.size()) + 1;
    panel.color_bar = place == static_cast<std::int64_t>(shown.size()) || place % page.columns == 0;
    panel.title = fmt::format("{}{}: {:.4f}", i == scan.chosen ? "chosen: " : "",
                              c_words(scan, scan.points[i].c, scan.axes.size()), scan.points[i].score());
    page.panels.emplace_back(std::move(panel));
  }
  return page;
}

}  // namespace mpol::plot
