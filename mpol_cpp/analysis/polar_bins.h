#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/analysis/pixel_overlap.h>
#include <mpol_cpp/analysis/sparse_operator.h>
#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

/// The pixels of a grid as parallelograms in the plane of a disc: x along the major axis, towards the position angle, y along
/// the minor one, to the East of it. Neighbours share their corners to the last bit.
class PixelsInPlane {
 public:
  /// @throws ValueError for a disc seen edge on
  PixelsInPlane(const GridCoords& coords, const DiscGeometry& geometry);

  /// The corner to the East and South of the pixel at a row and column of the sky; its other corners are those of the next row
  /// and column. Both up to npix.
  PlanePoint corner(std::int64_t row, std::int64_t column) const;
  ConvexPolygon pixel(std::int64_t row, std::int64_t column) const;
  /// The area of a pixel, arcsec^2 in the plane.
  double area() const;

 private:
  double cell_, half_, foreshortening_, cosine_, sine_, east_, north_;
};

/// The parts of pixels that lie in bins of radius and azimuth; row = radius bin * azimuth bins + azimuth bin, column = pixel,
/// value = part of the pixel's area. Pixels in order, each with its bins in order; on all threads.
/// @param radii     edges, arcsec, from 0 on, increasing
/// @param azimuths  edges, radian, increasing, over 2 pi at most
std::vector<SparseOperator::Entry> pixel_parts(const PixelsInPlane& pixels, std::int64_t npix, const std::vector<double>& radii,
                                               const std::vector<double>& azimuths);

}  // namespace mpol
