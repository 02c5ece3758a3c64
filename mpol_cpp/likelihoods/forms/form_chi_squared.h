#pragma once

#include <memory>

#include <ATen/ops/empty_like.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/accumulate.h>
#include <mpol_cpp/device/kept_in_graph.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol::losses::detail {

/// chi^2 of a sky as a differentiable function, of a form that works out value and gradient at once. A form has
///
///   Tensor evaluate(image, gradient)         one value per channel, (…, nchan), float64; writes the gradient
///   Tensor differentiable(sky, gradient)     the gradient at the sky, differentiable with respect to it, given its value there
template <typename Form>
struct FormChiSquared : torch::autograd::Function<FormChiSquared<Form>> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& sky, const std::shared_ptr<Form>& form) {
    const auto image = sky.contiguous();
    auto gradient = at::empty_like(image);
    const auto value = form->evaluate(image, gradient).sum(-1);
    context->save_for_backward({sky, gradient});
    context->saved_data["form"] = mpol::detail::keep_in_graph(form);
    return value.to(sky.scalar_type());
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const auto saved = context->get_saved_variables();
    const auto form = mpol::detail::kept_in_graph<Form>(context->saved_data["form"]);
    const auto slope = torch::GradMode::is_enabled() ? form->differentiable(saved[0], saved[1]) : saved[1];
    return {gradients[0].unsqueeze(-1).unsqueeze(-1).unsqueeze(-1) * slope, at::Tensor()};
  }
};

/// Likelihood::channel_values_and_gradient() by a form; one that can add to a gradient takes `accumulate` as a third argument of
/// evaluate().
template <typename Form>
at::Tensor form_values_and_gradient(Form& form, const at::Tensor& sky, at::Tensor& gradient, Accumulate accumulate) {
  check_gradient(sky, gradient);
  const torch::NoGradGuard no_grad;
  const auto image = sky.contiguous();
  if (gradient.is_contiguous()) {
    if constexpr (requires { form.evaluate(image, gradient, accumulate); }) return form.evaluate(image, gradient, accumulate);
    else if (accumulate == Accumulate::overwrite) return form.evaluate(image, gradient);
  }
  auto slope = at::empty_like(image);
  const auto values = form.evaluate(image, slope);
  if (accumulate == Accumulate::add) gradient.add_(slope);
  else gradient.copy_(slope);
  return values;
}

}  // namespace mpol::losses::detail
