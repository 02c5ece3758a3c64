#pragma once

#include <optional>

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

}  // namespace mpol::plot
