#pragma once

#include <map>
#include <string>
#include <typeinfo>

#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/models/base_cube.h>
#include <mpol_cpp/models/hann_conv_cube.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/models/image_model.h>

namespace mpol {

/// Options of a GriddedNet are those of its base cube.
using GriddedNetOptions = BaseCubeOptions;

/// What lies between the base pixels' intensities and the image.
enum class Smoothing {
  hann,  ///< HannConvCube
  none,  ///< nothing: the pixels are free. Fits of them are further from the sky at the scale of a pixel, and settle sooner
};

/// The standard RML model: base pixels -> softplus (or another mapping) -> Hann convolution -> image -> Fourier transform.
/// Names and defaults of MPoL v0.3 (base pixels start at -3). The convolution can be left out.
///
/// State dict: `bcube.base_cube` (…, nchan, npix, npix), sky orientation. Leading dimensions are independent problems.
class GriddedNetImpl : public Module<GriddedNetImpl>, public ImageModel {
 public:
  /// @param options    of the base cube
  /// @param smoothing  what lies between the pixels' intensities and the image
  /// @throws ValueError, ShapeError as BaseCubeImpl
  explicit GriddedNetImpl(GriddedNetOptions options, Smoothing smoothing = Smoothing::hann);
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
  const GriddedNetImpl* gridded_net() const override { return typeid(*this) == typeid(GriddedNetImpl) ? this : nullptr; }
  Tensor signed_pixels() override;
  const GriddedNetOptions& options() const { return options_; }  ///< of the base cube
  Smoothing smoothing() const { return smoothing_; }             ///< what lies between the pixels' intensities and the image
  /// What the model makes of intensities (…, npix, npix) of its pixels, in memory of its own: a linear map that is its own
  /// adjoint. Not differentiated.
  Tensor smoothed(const Tensor& intensities) const;
  /// Those of the grid, and "smoothing".
  std::map<std::string, std::string> state_labels() const override;

  BaseCube bcube{nullptr};           ///< the parameters
  HannConvCube conv_layer{nullptr};  ///< empty with Smoothing::none
  ImageCube icube{nullptr};          ///< the image of the last call
  FourierCube fcube{nullptr};        ///< its visibilities on the uv cells

 private:
  GriddedNetOptions options_;
  Smoothing smoothing_;
};

TORCH_MODULE(GriddedNet);

}  // namespace mpol
