#pragma once

#include <mpol_cpp/plot/canvas.h>
#include <mpol_cpp/plot/figure.h>

namespace mpol::plot {

/// Draws an image panel with its axes, colour bar, scale bar and beam into a part of a canvas.
/// @throws ValueError when it has no pixels
void paint(Canvas& canvas, const Box& area, const ImagePanel& panel);

/// Draws a curve panel with its axes and legend into a part of a canvas.
void paint(Canvas& canvas, const Box& area, const CurvePanel& panel);

}  // namespace mpol::plot
