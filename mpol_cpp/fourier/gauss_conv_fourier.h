#pragma once

#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/images/beam.h>

namespace mpol {

/// The Fourier transform of a Gaussian of unit area at the uv cells, (npix, npix) float64, packed:
///
///   T(u, v) = exp(-2 pi^2 (sigma_minor^2 u'^2 + sigma_major^2 v'^2))
///
/// with u' = u cos a - v sin a, v' = u sin a + v cos a, so that the image's major axis lies at the position angle a, East of
/// North.
Tensor gaussian_beam_taper(const Beam& beam, const GridCoords& coords);

/// Convolves every channel image with a Gaussian by multiplying its transform with that of the continuous Gaussian. The
/// image wraps around at the border; the flux is kept exactly. Differentiable to any order.
///
/// The taper stays in float64 and is narrowed to the image's precision where it is applied. State dict: `tapers`; nothing to
/// train.
class GaussConvFourierImpl : public Module<GaussConvFourierImpl> {
 public:
  /// @param beams  one, or one for each channel
  /// @throws ValueError for beams without extent or wider than the image
  GaussConvFourierImpl(GridCoords coords, std::vector<Beam> beams);
  /// One beam for all channels.
  GaussConvFourierImpl(GridCoords coords, Beam beam) : GaussConvFourierImpl(coords, std::vector<Beam>{beam}) {}
  void reset() override;

  /// @param sky  (…, nchan, npix, npix) real, any unit, sky orientation
  /// @return     same shape and dtype
  /// @throws ShapeError when it does not match the coordinates or the beams
  Tensor forward(const Tensor& sky) const;

  const GridCoords& coords() const { return coords_; }       ///< the grid of the images
  const std::vector<Beam>& beams() const { return beams_; }  ///< as given: one, or one for each channel

 private:
  GridCoords coords_;
  std::vector<Beam> beams_;
  Tensor tapers_;  // (nbeams, npix, npix/2 + 1) float64, for the transform of an image in sky orientation
};

TORCH_MODULE(GaussConvFourier);

}  // namespace mpol
