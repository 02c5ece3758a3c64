#pragma once

#include <utility>
#include <vector>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>

namespace mpol {

/// The image of a fit on its way, and what moves it; tensors are on the CPU.
struct FitView {
  Tensor image;                ///< (…, nchan, npix, npix), Jy/arcsec^2
  Tensor gradient;             ///< of the objective with respect to the image, like it
  Tensor change;               ///< since the last view; undefined where that is not known
  double gradient_norm = 0;    ///< Euclidean
  double largest_change = 0;   ///< of a pixel, Jy/arcsec^2; NaN where the change is not known
  std::vector<double> flux{};  ///< Jy, of each channel, of one problem after the other
};

/// Looks at a fit between two steps, as a callback of the Trainer may, and puts back what that touches: the fit goes on bit for
/// bit as without it.
///
///   FitProbe probe(objective, *model);
///   options.callbacks({[&](const Progress& progress) {
///     if (progress.loss.epoch % 100 == 0) show(probe.look(progress.model));
///     return CallbackAction::proceed;
///   }});
class FitProbe {
 public:
  /// @param start  the image that the first change is counted from
  FitProbe(const Objective& objective, ImageModel& start);

  /// @param model  the one of the fit: TrainOptions::model_interval tells how often callbacks see it as it is
  FitView look(ImageModel& model);
  /// The image that the next change is counted from; undefined: it is not known.
  void set_last(Tensor image) { last_ = std::move(image); }

 private:
  Tensor gradient_at(ImageModel& model, const Tensor& sky) const;

  Objective objective_;
  Tensor last_;
};

}  // namespace mpol
