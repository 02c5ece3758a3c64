#pragma once

#include <memory>
#include <string>
#include <utility>

#include <ATen/core/ivalue.h>

#include <mpol_cpp/device/module_holder.h>
#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>

namespace mpol {

/// An objective as a function of base pixels, with its gradient in the three passes of the fused step, on the CPU: the numbers of
/// `objective.evaluate(model)` and of its backward(), several times as fast, for loops and optimizers of one's own. Where
/// Trainer's optimizers do, it is faster still: it updates the pixels within the last pass.
///
/// Its room is made once; one call at a time. Data, weights of terms and their settings are those of the moment when it is made.
class FusedLoss : public torch::CustomClassHolder {
 public:
  /// Empty where it applies, else why it does not: see StepKind::fused.
  static std::string obstacle(ImageModel& model, const Objective& objective);

  /// @param model  whose grid, shape and dtype the base pixels have; it is not kept
  /// @throws ValueError where there is an obstacle
  template <HolderOf<ImageModel> Holder>
  FusedLoss(const Holder& model, Objective objective) : FusedLoss(static_cast<ImageModel&>(*model.ptr()), std::move(objective)) {}
  /// The same of the interface.
  FusedLoss(ImageModel& model, Objective objective);
  ~FusedLoss() override;

  /// @param base  (…, nchan, npix, npix), as the model's, on the CPU
  /// @return      (…) float64, the total of each problem; differentiable once
  /// @throws ShapeError, DeviceError
  Tensor operator()(const Tensor& base);

  /// The same without autograd. @param gradient  like `base`, contiguous; overwritten by that of the sum over problems
  Tensor value_and_gradient(const Tensor& base, Tensor& gradient);

  /// The losses of the last call, (columns, problems) float64, in the order of Objective::columns(). @throws ValueError before
  /// one
  const Tensor& losses() const;

 private:
  class Passes;
  Objective objective_;
  std::unique_ptr<Passes> passes_;
  Tensor losses_;
};

}  // namespace mpol
