#include <mpol_cpp/likelihoods/known_gradient.h>

#include <string>

#include <ATen/ops/empty_like.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/likelihood.h>

namespace mpol::losses::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct KnownGradient : torch::autograd::Function<KnownGradient> {
  static Tensor forward(AutogradContext* context, const Tensor& sky, Likelihood* likelihood, const std::string& subject) {
    auto gradient = at::empty_like(sky, at::MemoryFormat::Contiguous);
    const auto value = likelihood->value_and_gradient(sky.detach(), gradient, Accumulate::overwrite);
    context->save_for_backward({gradient});
    context->saved_data["subject"] = subject;
    return value.to(sky.scalar_type());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (torch::GradMode::is_enabled()) {
      throw ValueError(fmt::format("{} has no second derivative: take another, or leave create_graph out",
                                   context->saved_data["subject"].toStringRef()));
    }
    const auto saved = context->get_saved_variables();
    return {gradients[0].unsqueeze(-1).unsqueeze(-1).unsqueeze(-1) * saved[0], Tensor(), Tensor()};
  }
};

}  // namespace

Tensor chi_squared_with_gradient(const Tensor& sky, Likelihood& likelihood, const char* subject) {
  return KnownGradient::apply(sky, &likelihood, std::string(subject));
}

}  // namespace mpol::losses::detail
