#include <mpol_cpp/train/steps/fused_loss.h>

#include <vector>

#include <ATen/ops/empty_like.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/train/steps/engines/cpu_pipeline.h>
#include <mpol_cpp/train/steps/engines/fused_objective.h>

namespace mpol {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The gradient is that of all problems at once: each looks at its own pixels alone.
struct LossFunction : torch::autograd::Function<LossFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& base, FusedLoss* loss) {
    auto gradient = at::empty_like(base, at::MemoryFormat::Contiguous);
    auto value = loss->value_and_gradient(base, gradient);
    context->save_for_backward({gradient});
    return value;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (torch::GradMode::is_enabled()) {
      throw ValueError("the fused loss has first derivatives alone: use Objective::evaluate, or leave create_graph out");
    }
    const auto gradient = context->get_saved_variables().front();
    const auto factor = gradients[0].to(gradient.scalar_type()).unsqueeze(-1).unsqueeze(-1).unsqueeze(-1);
    return {gradient * factor, Tensor()};
  }
};

}  // namespace

/// The passes in the dtype of the model.
class FusedLoss::Passes {
 public:
  Passes(const ImageModel& model, const Objective& objective)
      : shape_(model.base().sizes().vec()), dtype_(model.base().scalar_type()) {
    if (dtype_ == torch::kFloat32) single_ = detail::make_cpu_pipeline<float>(model, objective);
    else double_ = detail::make_cpu_pipeline<double>(model, objective);
  }

  void check(const Tensor& tensor, const char* what) const {
    if (!tensor.is_cpu()) {
      throw DeviceError(fmt::format("the {} on {}: the fused loss is for the CPU; move them there, or use Objective::evaluate",
                                    what, tensor.device().str()));
    }
    if (tensor.sizes() == torch::IntArrayRef(shape_) && tensor.scalar_type() == dtype_) return;
    throw ShapeError(fmt::format("the {} {} of {}; the fused loss was made for {} of {}", what, tensor.sizes().vec(),
                                 c10::toString(tensor.scalar_type()), shape_, c10::toString(dtype_)));
  }

  Tensor run(const Tensor& base, Tensor& gradient, const Objective& objective) {
    const auto& values = single_ ? run(*single_, base, gradient) : run(*double_, base, gradient);
    return detail::loss_table(values, objective);
  }

  torch::IntArrayRef problems() const { return torch::IntArrayRef(shape_).slice(0, shape_.size() - 3); }

 private:
  /// The passes change the base pixels where there is an update alone.
  template <typename T>
  static const std::vector<ops::FusedValues>& run(ops::FusedPipeline<T>& pipeline, const Tensor& base, Tensor& gradient) {
    auto* pixels = const_cast<T*>(base.const_data_ptr<T>());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    return pipeline.run(ops::FusedUpdate::none, {pixels, nullptr, nullptr, gradient.mutable_data_ptr<T>()}, {});
  }

  std::vector<std::int64_t> shape_;
  torch::Dtype dtype_;
  std::unique_ptr<ops::FusedPipeline<float>> single_;  // one of the two
  std::unique_ptr<ops::FusedPipeline<double>> double_;
};

std::string FusedLoss::obstacle(ImageModel& model, const Objective& objective) {
  if (auto reason = detail::obstacle_to_fusing(model, objective); !reason.empty()) return reason;
  const auto device = model.base().device();
  return device.is_cpu() ? std::string() : fmt::format("the model is on {}; the fused loss is for the CPU", device.str());
}

FusedLoss::FusedLoss(ImageModel& model, Objective objective) : objective_(std::move(objective)) {
  objective_.check_grid(model.coords());
  if (const auto why = obstacle(model, objective_); !why.empty()) {
    throw ValueError(fmt::format("the fused loss does not apply: {}; use Objective::evaluate", why));
  }
  passes_ = std::make_unique<Passes>(model, objective_);
}

FusedLoss::~FusedLoss() = default;

Tensor FusedLoss::operator()(const Tensor& base) { return LossFunction::apply(base, this); }

Tensor FusedLoss::value_and_gradient(const Tensor& base, Tensor& gradient) {
  const torch::NoGradGuard no_grad;
  passes_->check(base, "base pixels are");
  passes_->check(gradient, "gradient is");
  if (!gradient.is_contiguous()) throw ShapeError("the gradient is not contiguous: give a contiguous tensor");
  losses_ = passes_->run(base.contiguous(), gradient, objective_);
  return losses_.select(0, 0).view(passes_->problems()).clone();
}

const Tensor& FusedLoss::losses() const {
  if (!losses_.defined()) throw ValueError("the fused loss has not been called yet");
  return losses_;
}

}  // namespace mpol
