#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// A structure of an image that was judged (StructureTest).
struct StructureFigure {
  std::string name;             ///< of the structure, in the titles
  Tensor region;                ///< (nchan, npix, npix), not 0 where it is marked; its outline is drawn
  Tensor image, filled, least;  ///< (nchan, npix, npix), Jy/arcsec^2, sky orientation: as in JudgedStructure
};

/// The page of judged structures, a row of four panels for each: the image, the image with the region filled, the cheapest image
/// without the structure, and the image minus that one. The first three share their colours. Of a cube it shows the channel from
/// which filling took most, and says so in the titles.
/// @throws ShapeError when an image does not fit the grid; ValueError without a structure
Page structure_page(const std::vector<StructureFigure>& figures, const GridCoords& coords);

}  // namespace mpol::plot
