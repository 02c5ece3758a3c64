#pragma once

#include <torch/nn/module.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

/// What the trainer needs of a model: parameters that make a sky cube. To train a model of your own, derive from
/// mpol::Module<Yours> (its tensors) and from this interface; the library's own models also allow faster steps.
class ImageModel {
 public:
  virtual ~ImageModel() = default;

  virtual const GridCoords& coords() const = 0;
  /// The image (…, nchan, npix, npix), Jy/arcsec^2, sky orientation, computed from the parameters, differentiable.
  virtual Tensor make_sky() = 0;
  /// The base pixels, for regularisers that act on them; undefined when the model has none.
  virtual Tensor base() const { return {}; }
  /// The module that holds its parameters and buffers.
  virtual torch::nn::Module& as_module() = 0;
};

}  // namespace mpol
