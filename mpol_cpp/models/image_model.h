#pragma once

#include <map>
#include <string>

#include <torch/nn/module.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/labeled_state.h>
#include <mpol_cpp/images/image_axes.h>

namespace mpol {

class GriddedNetImpl;

/// What the trainer needs of a model: parameters that make a sky cube. A model of your own derives from mpol::Module<Yours>
/// (its tensors) and from this interface, gives its grid to the constructor, and overrides one function, make_sky:
/// examples/own_parts.cpp. The library's own models also allow faster steps.
class ImageModel : public LabeledState {
 public:
  /// The grid of its image.
  const GridCoords& coords() const { return coords_; }
  /// The image (…, nchan, npix, npix), Jy/arcsec^2, sky orientation, computed from the parameters, differentiable. Its leading
  /// dimensions are the problems of a batch: they count for rate factors, stops and weights of problems.
  virtual Tensor make_sky() = 0;
  /// What the last dimensions of that image are, (channel, y, x) by default; all before them are problems.
  virtual ImageAxes axes() const { return cube_axes(); }
  /// The base pixels, for regularisers that act on them (ModelOutput::base); undefined when the model has none. They decide
  /// nothing else.
  virtual Tensor base() const { return {}; }
  /// Where pixels may be of either sign, their brightness before anything smooths it, whose magnitudes sparsity sums: neighbors
  /// of opposite signs that the image hardly shows are not free. Undefined elsewhere: of intensities sums are the image's.
  virtual Tensor signed_pixels() { return {}; }
  /// This model as the GriddedNet that it is; null, the default, for every other one, also for a class derived from GriddedNet,
  /// which may make its image in another way. Steps that need no autograd ask for it.
  virtual const GriddedNetImpl* gridded_net() const { return nullptr; }
  /// The module that holds its parameters and buffers, by default this very object. @throws ValueError where it is none
  virtual torch::nn::Module& as_module();
  /// "cell_size", "npix" and "axes".
  std::map<std::string, std::string> state_labels() const override;

 protected:
  /// @param coords  grid of its image
  explicit ImageModel(const GridCoords& coords) : coords_(coords) {}

 private:
  GridCoords coords_;
};

}  // namespace mpol
