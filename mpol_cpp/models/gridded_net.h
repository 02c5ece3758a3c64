#pragma once

#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/models/base_cube.h>
#include <mpol_cpp/models/hann_conv_cube.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/models/image_model.h>

namespace mpol {

using GriddedNetOptions = BaseCubeOptions;

/// The standard RML model: base pixels -> softplus -> Hann convolution -> image -> Fourier transform.
/// Names and defaults of MPoL v0.3 (base pixels start at -3).
///
/// State dict: `bcube.base_cube` (…, nchan, npix, npix), sky orientation. Leading dimensions are independent problems.
class GriddedNetImpl : public Module<GriddedNetImpl>, public ImageModel {
 public:
  explicit GriddedNetImpl(GriddedNetOptions options);
  void reset() override;

  /// Model visibilities on the uv cells, (…, nchan, npix, npix) complex, Jy, packed.
  Tensor forward();
  /// The image of the last forward() or make_sky(), (…, nchan, npix, npix), Jy/arcsec^2, sky orientation. It is what that call
  /// left, not computed here: within one expression C++ may ask for it before make_sky() is called, so call make_sky() first,
  /// in a statement of its own, and use what it gives. @throws ValueError when neither was called yet
  const Tensor& sky_cube() const { return icube->sky_cube(); }
  /// Its flux per channel, (…, nchan), Jy.
  Tensor flux() const { return icube->flux(); }

  Tensor make_sky() override;
  Tensor base() const override { return bcube->base_cube(); }
  const GriddedNetOptions& options() const { return options_; }

  BaseCube bcube{nullptr};
  HannConvCube conv_layer{nullptr};
  ImageCube icube{nullptr};
  FourierCube fcube{nullptr};

 private:
  GriddedNetOptions options_;
};

TORCH_MODULE(GriddedNet);

}  // namespace mpol
