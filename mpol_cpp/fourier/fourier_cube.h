#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/device/module.h>

namespace mpol {

/// Visibilities of an image on the cells of the uv grid: V = cell_area * fft2(packed image), in Jy.
/// No parameters, no state.
class FourierCubeImpl : public Module<FourierCubeImpl> {
 public:
  explicit FourierCubeImpl(GridCoords coords) : coords_(coords) {}  ///< @param coords  the grid of the images
  void reset() override {}

  /// @param sky  (…, nchan, npix, npix) real, Jy/arcsec^2, sky orientation
  /// @return     (…, nchan, npix, npix) complex, Jy, packed; differentiable to any order
  Tensor forward(const Tensor& sky) const;
  /// The exact adjoint: for every x and g, Re <forward(x), g> = <x, adjoint(g)>.
  /// @param visibilities  (…, nchan, npix, npix) complex, packed
  /// @return              (…, nchan, npix, npix) real, sky orientation
  Tensor adjoint(const Tensor& visibilities) const;

  const GridCoords& coords() const { return coords_; }  ///< the grid of the images

 private:
  GridCoords coords_;
};

TORCH_MODULE(FourierCube);

}  // namespace mpol
