#pragma once

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/plot/page.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// Width and height of a panel of the figures that the report shows, as of plot::summary_page.
inline constexpr int report_panel_width = 620, report_panel_height = 520;

/// What the report shows beside summary.png: histogram of the residuals, linear and logarithmic, with the Gaussian of their own
/// scatter; radial profile of the image about its centre of flux; the residual beyond the field. Four panels in two rows; of a
/// cube its middle channel.
/// @param sky     (nchan, npix, npix) float64 on the CPU, Jy/arcsec^2
/// @param center  of the image from the phase centre, for the titles
plot::Page report_page(const GridCoords& coords, const Tensor& sky, const DirtyProducts& dirty, const SkyOffset& center = {});

}  // namespace mpol::cli
