#include <mpol_cpp/plot/gnuplot_script.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <ATen/ops/avg_pool2d.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/axis_ticks.h>
#include <mpol_cpp/plot/color_map.h>
#include <mpol_cpp/plot/gnuplot.h>
#include <mpol_cpp/plot/panel_geometry.h>

namespace mpol::plot {
namespace {

std::string palette_name(ColorScale scale) {
  return scale == ColorScale::sequential ? "sequential.palette" : "diverging.palette";
}

FigureFile palette_file(ColorScale scale) {
  std::string lines = "# red green blue, from the lower to the upper end of the colour scale\n";
  for (const auto& color : color_table(scale))
    lines += fmt::format("{:.4f} {:.4f} {:.4f}\n", color.red / 255.0, color.green / 255.0, color.blue / 255.0);
  return {palette_name(scale), lines};
}

/// The ticks of a colour bar as gnuplot lists them, at their places along it.
std::string tick_list(const ImagePanel& panel, double upper) {
  std::string list;
  for (const auto& tick : color_bar_ticks(panel, 1.0 / 7)) {
    const double place =
        panel.norm.stretch == Stretch::linear ? tick.value : color_place(tick.value, panel.lower, upper, panel.norm, panel.scale);
    list += fmt::format("{}{} {:.10g}", list.empty() ? "" : ", ", quoted(tick.label), place);
  }
  return list;
}

/// Letters of a text in UTF-8.
std::size_t letters_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

/// Width of a label in letters; raised digits and points take half a letter.
double width_of(const std::string& label) {
  double raised = 0;
  for (const auto* narrow : {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "⁻", "·"}) {
    for (auto at = label.find(narrow); at != std::string::npos; at = label.find(narrow, at + 1)) ++raised;
  }
  return static_cast<double>(letters_of(label)) - raised / 2;
}

/// gnuplot's expression for the stretched share of a share, both in [0, 1].
std::string stretch_expression(const ColorNorm& norm) {
  if (norm.stretch == Stretch::power) return fmt::format("x**{:.10g}", norm.gamma);
  return fmt::format("asinh(x/{:.10g})/asinh(1/{:.10g})", norm.softening, norm.softening);
}

std::string hex(Rgb color) { return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue); }

/// Averages blocks of pixels of an image that has more of them than a panel can show.
Tensor thinned(const Tensor& image) {
  constexpr std::int64_t most = 1200;
  const auto factor = (std::max(image.size(0), image.size(1)) + most - 1) / most;
  if (factor == 1 || image.size(0) % factor != 0 || image.size(1) % factor != 0) return image;
  return at::avg_pool2d(image.unsqueeze(0), {factor, factor}).squeeze(0);
}

/// Leaves out points that would hide behind others: of those that lie in one pixel of a panel the first is drawn. The uv
/// coverage of an observation has ten times as many points as pixels.
class PixelSieve {
 public:
  PixelSieve(const PanelRanges& ranges, const Page& page)
      : ranges_(ranges),
        columns_(page.panel_width),
        rows_(page.panel_height),
        taken_(static_cast<std::size_t>(columns_ * rows_)) {}

  bool lets_through(double x, double y) {
    const auto column = place(x, ranges_.x, columns_), row = place(y, ranges_.y, rows_);
    if (column < 0 || column >= columns_ || row < 0 || row >= rows_) return true;
    const auto pixel = static_cast<std::size_t>(row * columns_ + column);
    const bool is_first = !taken_[pixel];
    taken_[pixel] = true;
    return is_first;
  }

 private:
  static std::int64_t place(double value, const AxisRange& range, std::int64_t pixels) {
    return static_cast<std::int64_t>(
        std::floor((value - range.lower) / (range.upper - range.lower) * static_cast<double>(pixels)));
  }

  PanelRanges ranges_;
  std::int64_t columns_, rows_;
  std::vector<bool> taken_;
};

/// Places [begin, end) of an axis.
struct Places {
  std::int64_t begin, end;
};
/// Those from the first to the last that is marked, and a neighbour on each side. @param marked  (n) bool, one of them at least
Places around(const Tensor& marked) {
  const auto found = marked.nonzero();
  return {std::max<std::int64_t>(found.min().item<std::int64_t>() - 1, 0),
          std::min(found.max().item<std::int64_t>() + 2, marked.size(0))};
}

/// Writes the script and the data of one page.
class Writer {
 public:
  Writer(const Page& page, const std::string& stem) : page_(page), stem_(stem) {}

  std::vector<FigureFile> write() {
    head();
    for (const auto& panel : page_.panels) {
      ++number_;
      std::visit([this](const auto& kind) { add(kind); }, panel);
    }
    script_ += "unset multiplot\nset output\n";
    files_.insert(files_.begin(), {stem_ + ".gp", script_});
    return std::move(files_);
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    script_ += fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }

  void head() {
    const auto panels = static_cast<std::int64_t>(page_.panels.size());
    const auto columns = std::min(page_.columns, panels);
    const auto rows = (panels + columns - 1) / columns;
    const std::int64_t header = page_.title.empty() ? 0 : 44;
    line("# Draws the figure again when gnuplot runs this script in its folder.");
    line("if (!exists('output')) output = {}", quoted(stem_ + ".png"));
    line("set encoding utf8");
    line("if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {{");
    line("  set terminal pngcairo size {},{} fontscale 1.1", columns * page_.panel_width, rows * page_.panel_height + header);
    line("}} else {{");
    line("  set terminal png truecolor size {},{}", columns * page_.panel_width, rows * page_.panel_height + header);
    line("}}");
    line("set output output");
    const auto title = page_.title.empty() ? std::string() : fmt::format(" title {} noenhanced", quoted(page_.title));
    line("set multiplot layout {},{}{}", rows, columns, title);
    line("set border lw 1.3 lc rgb '#1e1e1e'");
    line("set tics out nomirror");
  }

  void add(const ImagePanel& panel) {
    const auto image = thinned(pixels_of(panel));
    const auto rows = image.size(0), columns = image.size(1);
    const auto name = fmt::format("{}_{}.f32", stem_, number_);
    add_floats(name, image, panel);
    add_palette(panel.scale);

    const auto& [east, west, south, north] = panel.extent;
    const double dx = std::abs(east - west) / static_cast<double>(columns), dy = (north - south) / static_cast<double>(rows);
    line("\n# {} x {} pixels, 32-bit floats, rows from the lowest to the highest, each in the order of its axis", columns, rows);
    line("unset key\nunset object\nunset arrow\nunset label\nunset logscale\nunset grid");
    line("set size ratio {:.6g}", panel.height_of_width.value_or((north - south) / std::abs(east - west)));
    line("set title {} noenhanced", quoted(panel.title));
    line("set xlabel {}\nset ylabel {}", quoted(panel.x_label), quoted(panel.y_label));
    line("set format x '%g'\nset format y '%g'");
    line("set lmargin 9\nset rmargin 15\nset tmargin 3\nset bmargin 4");
    line("set xtics enhanced autofreq\nset ytics enhanced autofreq");
    line("set xrange [{:.10g}:{:.10g}]\nset yrange [{:.10g}:{:.10g}]", east, west, south, north);
    const double upper = panel.upper > panel.lower ? panel.upper : panel.lower + 1;
    const bool stretched = panel.norm.stretch != Stretch::linear;
    line("set cbrange [{:.10g}:{:.10g}]", stretched ? 0.0 : panel.lower, stretched ? 1.0 : upper);
    if (stretched) define_stretch(panel, upper);
    if (panel.color_bar) color_bar(panel, upper);
    else line("unset colorbox");
    line("set palette file {} using 1:2:3", quoted(palette_name(panel.scale)));
    const auto lines = panel.contours ? contours(panel) : std::string();
    marks(panel);
    line(
        "plot {} binary array=({},{}) format='%float32' endian=little origin=({:.10g},{:.10g}) dx={:.10g} dy={:.10g} "
        "{}with image notitle{}",
        quoted(name), columns, rows, std::min(east, west) + dx / 2, south + dy / 2, dx, dy, stretched ? "using (place($1)) " : "",
        lines);
  }

  /// Has gnuplot find the lines. @return what plots them behind an image
  std::string contours(const ImagePanel& panel) {
    auto map = panel;
    map.values = panel.contours->values;
    const auto all = thinned(pixels_of(map));
    const auto& levels = panel.contours->levels;
    const auto above = all >= *std::min_element(levels.begin(), levels.end());
    if (!above.any().item<bool>()) return {};
    const auto of_rows = around(above.any(1)), of_columns = around(above.any(0));  // gnuplot's time is that of the pixels
    const auto values = all.slice(0, of_rows.begin, of_rows.end).slice(1, of_columns.begin, of_columns.end).contiguous();
    const auto rows = values.size(0), columns = values.size(1);
    const auto name = fmt::format("{}_{}_contours.f32", stem_, number_);
    add_floats(name, values, panel);
    const auto& [east, west, south, north] = panel.extent;
    const double dx = (west - east) / static_cast<double>(all.size(1)), dy = (north - south) / static_cast<double>(all.size(0));
    const double left = east + dx * static_cast<double>(of_columns.begin),
                 right = east + dx * static_cast<double>(of_columns.end);
    line("set contour base\nunset surface\nset cntrparam levels discrete {:.10g}", fmt::join(panel.contours->levels, ","));
    line("set table $contours_{}", number_);
    line("splot {} binary array=({},{}) format='%float32' endian=little origin=({:.10g},{:.10g},0) dx={:.10g} dy={:.10g} notitle",
         quoted(name), columns, rows, std::min(left, right) + std::abs(dx) / 2,
         south + dy * (static_cast<double>(of_rows.begin) + 0.5), std::abs(dx), dy);
    line("unset table\nunset contour\nset surface");
    return fmt::format(", $contours_{} using 1:2 with lines lw 1.2 lc rgb '#ffffff' notitle", number_);
  }

  /// Adds an image as 32-bit floats, rows from South to North, each from West to East; a map from the axis' lower end.
  void add_floats(const std::string& name, const Tensor& image, const ImagePanel& panel) {
    const auto west_to_east = panel.extent[0] > panel.extent[1] ? image.flip(1).contiguous() : image;
    FigureFile data{name, std::string(static_cast<std::size_t>(image.numel()) * sizeof(float), '\0')};
    std::memcpy(data.contents.data(), west_to_east.const_data_ptr<float>(), data.contents.size());
    files_.push_back(std::move(data));
  }

  /// At a place of our own, so that panels with and without a bar are of one size; gnuplot would put its label where ticks
  /// of its choice end, not ours, which may lie under it then.
  void color_bar(const ImagePanel& panel, double upper) {
    line("set colorbox user origin graph 1.03, graph 0 size graph 0.05, graph 1");
    line("set cbtics ({}) noenhanced", tick_list(panel, upper));
    double widest = 0;
    for (const auto& tick : color_bar_ticks(panel, 1.0 / 7)) widest = std::max(widest, width_of(tick.label));
    line("set label 2 {} at graph 1.08, graph 0.5 center rotate offset character {:.1f},0 noenhanced", quoted(panel.unit),
         widest + 3.2);
  }

  /// place(value) along the colour bar, which then runs from 0 to 1.
  void define_stretch(const ImagePanel& panel, double upper) {
    line("stretch(x) = {}", stretch_expression(panel.norm));
    line("share(value) = (value-({:.17g}))/({:.17g})", panel.lower, upper - panel.lower);
    line("clip(x) = x < 0 ? 0 : x > 1 ? 1 : x");
    line("place(value) = {}", panel.scale == ColorScale::sequential
                                  ? "stretch(clip(share(value)))"
                                  : "0.5+0.5*sgn(share(value)-0.5)*stretch(clip(2*abs(share(value)-0.5)))");
  }

  void marks(const ImagePanel& panel) {
    const auto* color = panel.scale == ColorScale::sequential ? "#ffffff" : "#1e1e1e";
    if (panel.beam) {
      script_ += "set object 1 polygon from ";
      auto outline = beam_outline(panel);
      outline.push_back(outline.front());
      for (std::size_t i = 0; i < outline.size(); ++i)
        script_ += fmt::format("{}{:.8g},{:.8g}", i == 0 ? "" : " to ", outline[i][0], outline[i][1]);
      line(" front fs transparent solid 0.5 border lc rgb '{}' fc rgb '{}' lw 1.5", color, color);
    }
    if (panel.scale_bar) {
      const auto bar = bar_place(panel);
      line("set arrow 1 from {:.8g},{:.8g} to {:.8g},{:.8g} nohead front lw 3 lc rgb '{}'", bar.east, bar.north, bar.west,
           bar.north, color);
      line("set label 1 {} at {:.8g},{:.8g} center front noenhanced tc rgb '{}'", quoted(panel.scale_bar->label),
           (bar.east + bar.west) / 2, bar.label_north, color);
    }
  }

  void add(const CurvePanel& panel) {
    const auto name = fmt::format("{}_{}.txt", stem_, number_);
    const auto ranges = ranges_of(panel);
    files_.push_back({name, columns_of(panel, ranges)});
    line("\n# one block of x, y and, for error bars, their ends per curve");
    line("unset object\nunset arrow\nunset label\nunset logscale");
    line("set lmargin {}\nset rmargin 5\nset tmargin 3\nset bmargin 4", left_margin(panel.y_scale, ranges.y));
    line("set size {}", panel.equal_axes ? "ratio 1" : "noratio");
    line("set title {} noenhanced\nset xlabel {} noenhanced\nset ylabel {} noenhanced", quoted(panel.title),
         quoted(panel.x_label), quoted(panel.y_label));
    axis("x", panel.x_scale, ranges.x);
    axis("y", panel.y_scale, ranges.y);
    const auto corner = legend_corner(panel);
    line("set grid lc rgb '#e0e0e0'\nset key {} {} noenhanced samplen 2 opaque", corner.top ? "top" : "bottom",
         corner.right ? "right" : "left");
    if (panel.curves.empty()) line("plot NaN notitle");
    for (std::size_t i = 0; i < panel.curves.size(); ++i) {
      const auto& curve = panel.curves[i];
      const auto color = hex(color_of_curve(panel, i));
      const auto title = curve.label.empty() ? "notitle" : "title " + quoted(curve.label);
      const bool small = curve.style == CurveStyle::points && point_size(curve) < 0.5 && !curve.label.empty();
      script_ += fmt::format("{} {} index {} {} lc rgb '{}' {}", i == 0 ? "plot" : "    ", quoted(name), i, drawing(curve), color,
                             small ? "notitle" : title);
      if (small) script_ += fmt::format(", \\\n     keyentry with points pt 7 ps 0.7 lc rgb '{}' {}", color, title);
      script_ += i + 1 < panel.curves.size() ? ", \\\n" : "\n";
    }
  }

  static double point_size(const Curve& curve) { return curve.x.size() > 2000 ? 0.15 : curve.x.size() > 200 ? 0.4 : 0.7; }

  static std::string drawing(const Curve& curve) {
    const double size = point_size(curve);
    switch (curve.style) {
      case CurveStyle::line:
        return "using 1:2 with lines lw 2";
      case CurveStyle::dashes:
        return "using 1:2 with lines lw 2 dt 2";
      case CurveStyle::steps:
        return "using 1:2 with histeps lw 2";
      case CurveStyle::guide:
        return "using 1:2 with lines lw 0.7";
      case CurveStyle::band:
        return "using 1:3:4 with filledcurves fs transparent solid 0.3 noborder";
      case CurveStyle::points:
        break;
    }
    if (curve.error.empty()) return fmt::format("using 1:2 with points pt 7 ps {}", size);
    return fmt::format("using 1:2:3:4 with yerrorbars pt 7 ps {} lw 1.3", size);
  }

  static std::vector<Tick> shown_ticks(const AxisRange& range) { return linear_ticks(range.lower, range.upper, 8); }

  static std::string list_of(const std::vector<Tick>& ticks) {
    std::string list;
    for (const auto& tick : ticks) list += fmt::format("{}{} {:.10g}", list.empty() ? "" : ", ", quoted(tick.label), tick.value);
    return list;
  }

  /// Letters that the labels of the y axis need beside the panel.
  static std::size_t left_margin(AxisScale scale, const AxisRange& range) {
    std::size_t widest = 5;
    if (scale == AxisScale::linear) {
      for (const auto& tick : shown_ticks(range)) widest = std::max(widest, letters_of(tick.label));
    }
    return 7 + widest;
  }

  void axis(const char* which, AxisScale scale, const AxisRange& range) {
    line("set {}range [{:.10g}:{:.10g}]", which, range.lower, range.upper);
    if (scale == AxisScale::linear) {
      line("set {}tics ({}) noenhanced", which, list_of(shown_ticks(range)));
      return;
    }
    line("set logscale {}\nset format {} '10^{{%T}}'", which, which);
    const auto ticks = logarithmic_ticks(range.lower, range.upper, 8);
    // gnuplot's own have small ones between powers of ten; without two of those in sight it would label at most one place.
    if (ticks.size() >= 2 && ticks[1].value >= 9.9 * ticks[0].value) line("set {}tics enhanced autofreq", which);
    else line("set {}tics ({}) noenhanced", which, list_of(ticks));
  }

  /// Bars that reach below a logarithmic axis end at its lower end.
  std::string columns_of(const CurvePanel& panel, const PanelRanges& ranges) const {
    constexpr std::size_t few = 2000;
    const bool is_linear = panel.x_scale == AxisScale::linear && panel.y_scale == AxisScale::linear;
    std::string text;
    for (const auto& curve : panel.curves) {
      text += fmt::format("# {}\n", curve.label.empty() ? "x y" : curve.label);
      bool any = false;
      std::optional<PixelSieve> sieve;
      if (is_linear && curve.style == CurveStyle::points && curve.error.empty() && curve.x.size() > few) {
        sieve.emplace(ranges, page_);
      }
      for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
        if (!can_be_shown(curve.x[i], panel.x_scale) || !can_be_shown(curve.y[i], panel.y_scale)) continue;
        if (sieve && !sieve->lets_through(curve.x[i], curve.y[i])) continue;
        text += fmt::format("{:.8g} {:.8g}", curve.x[i], curve.y[i]);
        if (!curve.error.empty()) {
          const auto [low, high] = bar_of(curve, i);
          text += fmt::format(" {:.8g} {:.8g}", can_be_shown(low, panel.y_scale) ? low : ranges.y.lower, high);
        }
        text += '\n';
        any = true;
      }
      if (!any) text += "NaN NaN NaN NaN\n";
      text += "\n\n";
    }
    return text;
  }

  void add_palette(ColorScale scale) {
    const auto name = palette_name(scale);
    const auto same = [&](const FigureFile& file) { return file.name == name; };
    if (std::none_of(files_.begin(), files_.end(), same)) files_.push_back(palette_file(scale));
  }

  const Page& page_;
  std::string stem_;
  std::string script_;
  std::vector<FigureFile> files_;
  int number_ = 0;
};

}  // namespace

std::vector<FigureFile> gnuplot_files(const Page& page, const std::string& stem) {
  if (page.panels.empty() || page.columns < 1) throw ValueError("a page without panels cannot be drawn");
  return Writer(page, stem).write();
}

}  // namespace mpol::plot
