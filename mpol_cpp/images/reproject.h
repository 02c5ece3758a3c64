#pragma once

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

using torch::Tensor;

/// Where the pixels of an image lie on the sky when they are oblong, turned or sheared: the position of the middle of pixel (row,
/// column) from the reference position is East east_per_column (column - reference_column) + east_per_row (row - reference_row),
/// and North likewise.
struct PixelLattice {
  double east_per_column = -1;  ///< arcsec
  double east_per_row = 0;      ///< arcsec
  double north_per_column = 0;  ///< arcsec
  double north_per_row = 1;     ///< arcsec
  double reference_row = 0;     ///< 0-based, may lie between pixels
  double reference_column = 0;  ///< of the same position

  /// East and North of a place in the image, arcsec from the reference position.
  SkyOffset sky(double row, double column) const;
  double width() const;   ///< length of a step from column to column, arcsec
  double height() const;  ///< length of a step from row to row, arcsec
  double area() const;    ///< of a pixel, arcsec^2
};

/// An image with any pixels on square ones with North up: each new pixel gets the mean brightness of its square, by the exact
/// area of the parallelograms that overlap it, which are of constant brightness and dark beyond the image. Flux is kept exactly
/// where the new grid covers the old one, and nothing becomes negative that was not. The gradient does not pass.
/// @param cube    (…, rows, columns), brightness (not flux in a pixel), floating, on any device; the CPU computes, in float64
/// @param center  of the middle of `to` from the reference position
/// @return        (…, npix, npix) on `to`, sky orientation, dtype and device of the cube
/// @throws ShapeError for less than two dimensions; ValueError when the pixels have no area or the cube requires a gradient
/// Source: Sutherland & Hodgman 1974 (clipping of convex polygons).
Tensor reproject(const Tensor& cube, const PixelLattice& from, const GridCoords& to, const SkyOffset& center = {});

}  // namespace mpol
