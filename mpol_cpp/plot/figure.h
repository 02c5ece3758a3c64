#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <torch/types.h>

namespace mpol::plot {

using torch::Tensor;

/// Which program drew a figure.
enum class Renderer {
  gnuplot,   ///< the figure's data and script stay beside it, for changes by hand
  built_in,  ///< plain PNG writer of this library, used when gnuplot is not there or fails
};

/// Which program is to draw: `automatic` takes gnuplot when it is on PATH and works, else the built-in writer.
enum class RendererChoice { automatic, gnuplot, built_in };

/// How values become colours.
enum class ColourScale {
  sequential,  ///< dark to bright
  diverging,   ///< blue, white, red about zero
};

/// Restoring or dirty beam, drawn as an ellipse in the lower left corner.
struct BeamEllipse {
  double major = 0;           ///< full width at half maximum, arcsec
  double minor = 0;           ///< arcsec
  double position_angle = 0;  ///< of the major axis, radian, North through East
};

/// A bar of a given length, drawn in the lower right corner.
struct ScaleBar {
  double length = 0;  ///< arcsec
  std::string label;  ///< for example `0.5″` or `100 au`
};

/// An image of the sky with axes, colour bar, and optional beam and scale bar.
struct ImagePanel {
  std::string title;
  Tensor values;                   ///< (ny, nx) in sky orientation: row 0 South, column 0 East; any floating dtype
  std::array<double, 4> extent{};  ///< outer edges East (left), West (right), South, North, arcsec
  double lower = 0, upper = 1;     ///< values at the ends of the colour scale
  ColourScale scale = ColourScale::sequential;
  std::string unit;  ///< beside the colour bar
  std::optional<ScaleBar> scale_bar;
  std::optional<BeamEllipse> beam;
};

enum class CurveStyle { line, points };

/// One set of points of a curve panel. Points that are not finite, or not positive on a logarithmic axis, are left out.
struct Curve {
  std::string label;  ///< empty: not in the legend
  CurveStyle style = CurveStyle::line;
  std::vector<double> x, y;
};

enum class AxisScale { linear, logarithmic };

/// x-y plot.
struct CurvePanel {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
  AxisScale x_scale = AxisScale::linear;
  AxisScale y_scale = AxisScale::linear;
  bool equal_axes = false;  ///< the same range, symmetric about zero, in x and y (uv coverage)
};

using Panel = std::variant<ImagePanel, CurvePanel>;

/// A page of panels, filled row by row.
struct Page {
  std::string title;
  std::int64_t columns = 1;
  std::vector<Panel> panels;
  std::int64_t panel_width = 700, panel_height = 600;  ///< pixels
};

/// Where and how figures are drawn.
struct RenderOptions {
  RendererChoice renderer = RendererChoice::automatic;
  /// Folder for gnuplot's script and data; empty: `figures` beside the figure.
  std::filesystem::path script_folder;
  /// Longest time gnuplot may take before it is given up.
  double timeout_seconds = 60;
};

/// Draws a page as a PNG file that appears under its name only when complete. Falls back to the built-in writer, with
/// one warning in the log, when gnuplot is missing or fails.
/// @throws FileError when the file cannot be written; ValueError for a page without panels or a panel without pixels
Renderer render(const std::filesystem::path& path, const Page& page, const RenderOptions& options = {});

}  // namespace mpol::plot
