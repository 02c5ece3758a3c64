#pragma once

#include <cstdint>

#include <torch/arg.h>
#include <torch/types.h>

#include <mpol_cpp/device/module_holder.h>
#include <mpol_cpp/models/image_model.h>

namespace mpol {

/// Options of train_to_dirty_image().
struct TrainToDirtyOptions {
  /// Length of a step along the gradient of L, > 0.
  TORCH_ARG(double, learning_rate) = 100;
  /// How many steps are taken, >= 1.
  TORCH_ARG(std::int64_t, steps) = 1000;
};

/// Brings a model's image near a dirty image, from where another fit may start: steps of gradient descent on the distance
///
///   L = sqrt( sum (I - dirty)^2 )
///
/// of all pixels and channels. Pixels where the dirty image is negative end near zero. MPoL's train_to_dirty_image; where a
/// pixel mapping has an inverse, a start image through it (`--start dirty`) costs nothing.
/// @param model  changed in place
/// @param dirty  (…, nchan, npix, npix), Jy/arcsec^2, sky orientation: `DirtyImager::image()` in that unit. It is taken to
///               the dtype and device of the model
/// @return       L after the last step, Jy/arcsec^2
/// @throws ShapeError when it has not the shape of the model's image; ValueError for a learning rate that is not finite and
///         > 0, or fewer than one step; DivergedError when L is not finite in the end
double train_to_dirty_image(ImageModel& model, const Tensor& dirty, const TrainToDirtyOptions& options = {});

/// The same of a model's holder, `train_to_dirty_image(net, dirty)`.
template <HolderOf<ImageModel> Holder>
double train_to_dirty_image(const Holder& model, const Tensor& dirty, const TrainToDirtyOptions& options = {}) {
  return train_to_dirty_image(static_cast<ImageModel&>(*model.ptr()), dirty, options);
}

}  // namespace mpol
