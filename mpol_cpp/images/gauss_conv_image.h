#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/images/beam.h>

namespace mpol {

/// Convolves every channel image with a Gaussian sampled at the cell spacing, with zeros around the image: what lies
/// further than the kernel's width from the border keeps its flux. Differentiable to any order.
///
/// Away from the border it gives what GaussConvFourier gives, as far as the sampled Gaussian has the transform of the
/// continuous one: to 1e-6 of any image when minor axis is at least 4 cells.
///
/// The sums are computed by transforms of the padded image, so their cost does not depend on the beam. The kernel stays in
/// float64 and is narrowed to the image's precision where it is applied. State dict: `spectra`, the transforms of the
/// kernels; nothing to train.
class GaussConvImageImpl : public Module<GaussConvImageImpl> {
 public:
  /// @param beams       one, or one for each channel
  /// @param truncation  half width of the kernel in standard deviations of the major axis, > 0; beyond 7 lie 2e-11 of it
  /// @throws ValueError for beams without extent or wider than the image, or a truncation that is not positive
  GaussConvImageImpl(GridCoords coords, std::vector<Beam> beams, double truncation = 7);
  /// One beam for all channels.
  GaussConvImageImpl(GridCoords coords, Beam beam, double truncation = 7)
      : GaussConvImageImpl(coords, std::vector<Beam>{beam}, truncation) {}
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
  double truncation_;
  std::int64_t padded_ = 0;  // pixels along each axis of the padded image
  Tensor spectra_;           // (nbeams, padded, padded/2 + 1) float64: the kernels are even, their transforms real
};

TORCH_MODULE(GaussConvImage);

}  // namespace mpol
