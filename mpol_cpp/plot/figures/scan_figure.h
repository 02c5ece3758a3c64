#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/crossval/scan.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// The page of a cross-validation: for each searched lambda the score against c, a curve for each value of the others, with the
/// chosen point. Points whose score is not finite are left out. Where fits have a penalty, misfit against penalty besides (the
/// L-curve).
/// @throws ValueError for a scan without points
Page scan_page(const Scan& scan);

/// The page of the images along a scan, in the order of rising c, the chosen one marked: of more than twelve points the best.
/// All share one colour scale, the square root, and the square around what is bright in the chosen one.
Page gallery_page(const Scan& scan, const GridCoords& coords);

}  // namespace mpol::plot
