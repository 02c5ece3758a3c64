#include <mpol_cpp/train/steps/parameter_sums.h>

namespace mpol::detail {
namespace {

Tensor sum_of(const std::vector<NamedParameter>& parameters) {
  const torch::NoGradGuard no_grad;
  Tensor sum;
  for (const auto& parameter : parameters) {
    const auto own = parameter.tensor.sum().to(torch::kFloat64);
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

/// 0, or no number where the square of a gradient overflows.
Tensor overflow_of(const std::vector<NamedParameter>& parameters) {
  const torch::NoGradGuard no_grad;
  Tensor overflow;
  for (const auto& parameter : parameters) {
    const auto& gradient = parameter.tensor.grad();
    if (!gradient.defined() || gradient.numel() == 0) continue;
    const auto own = (gradient.abs().max().square() * 0).to(torch::kFloat64);
    overflow = overflow.defined() ? overflow + own : own;
  }
  return overflow;
}

}  // namespace

Tensor sum_of_parameters(OptimizerKind kind, const std::vector<NamedParameter>& parameters) {
  auto sum = sum_of(parameters);
  if (kind != OptimizerKind::adam) return sum;
  const auto overflow = overflow_of(parameters);
  return overflow.defined() ? sum + overflow : sum;
}

}  // namespace mpol::detail
