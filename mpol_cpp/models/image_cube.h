#pragma once

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/device/module.h>

namespace mpol {

/// Flux of every channel, cell^2 * sum I: (…, nchan, npix, npix) in Jy/arcsec^2 -> (…, nchan) in Jy.
Tensor flux(const Tensor& sky_cube, const GridCoords& coords);

/// Holds the image that last passed through it and gives it in either order. No parameters; what it holds is a value
/// of the last forward call, not state.
class ImageCubeImpl : public Module<ImageCubeImpl> {
 public:
  /// @param coords  the grid of the images that pass
  explicit ImageCubeImpl(GridCoords coords) : coords_(coords) {}
  void reset() override {}

  /// @param sky  (…, nchan, npix, npix), Jy/arcsec^2, sky orientation; returned as it is
  /// @throws ShapeError when it does not match the coordinates
  Tensor forward(const Tensor& sky);

  const GridCoords& coords() const { return coords_; }  ///< the grid of the images that pass
  /// @throws ValueError when nothing has passed through yet
  const Tensor& sky_cube() const;
  Tensor packed_cube() const;                                      ///< the image in packed order, as sky_cube() otherwise
  Tensor flux() const { return mpol::flux(sky_cube(), coords_); }  ///< of its channels, (…, nchan), Jy

 private:
  GridCoords coords_;
  Tensor sky_cube_;
};

TORCH_MODULE(ImageCube);

}  // namespace mpol
