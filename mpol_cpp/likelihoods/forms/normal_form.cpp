#include <mpol_cpp/likelihoods/forms/normal_form.h>

#include <torch/autograd.h>

#include <mpol_cpp/device/kept_in_graph.h>

namespace mpol {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using NormalFormPtr = std::shared_ptr<NormalForm>;

/// x -> 2 T x, its own adjoint.
struct TwiceProduct : torch::autograd::Function<TwiceProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const NormalFormPtr& form) {
    context->saved_data["form"] = detail::keep_in_graph(form);
    return form->twice_product(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {TwiceProduct::apply(gradients[0], detail::kept_in_graph<NormalForm>(context->saved_data["form"])), Tensor()};
  }
};

/// sky -> the gradient of chi^2 given as a constant; its own derivative is 2 T.
struct GradientAt : torch::autograd::Function<GradientAt> {
  static Tensor forward(AutogradContext* context, const Tensor&, const Tensor& gradient, const NormalFormPtr& form) {
    context->saved_data["form"] = detail::keep_in_graph(form);
    return gradient.clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto form = detail::kept_in_graph<NormalForm>(context->saved_data["form"]);
    return {TwiceProduct::apply(gradients[0], form), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor NormalForm::differentiable(const Tensor& sky, const Tensor& gradient) {
  return GradientAt::apply(sky, gradient, shared_from_this());
}

}  // namespace mpol
