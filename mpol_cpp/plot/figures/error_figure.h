#pragma once

#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// An image with its errors.
struct ErrorFigure {
  /// A figure of images on a grid.
  explicit ErrorFigure(const GridCoords& grid) : coords(grid) {}

  GridCoords coords;         ///< of the maps
  Tensor image, error;       ///< (nchan, npix, npix), sky orientation, Jy/beam, or Jy/arcsec^2 where there is no beam
  Tensor signal_to_noise;    ///< same shape
  std::optional<Beam> beam;  ///< of all three
};

/// The page of an image with contours of its signal to noise, of its error, and of signal to noise. Of a cube it shows the middle
/// channel, and says so in the titles.
/// @throws ShapeError when an image does not fit the grid
Page error_page(const ErrorFigure& figure);

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
