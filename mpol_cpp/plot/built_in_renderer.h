#pragma once

#include <mpol_cpp/plot/figure.h>
#include <mpol_cpp/plot/png.h>

namespace mpol::plot {

/// Draws a page without any other program.
/// @throws ValueError for a page without panels or an image panel without pixels
Picture draw_page(const Page& page);

}  // namespace mpol::plot
