#include <mpol_cpp/train/divergence.h>

#include <algorithm>
#include <cmath>

#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/objective/trained_parameters.h>

namespace mpol::detail {
namespace {

bool has_finite_gradient(const Tensor& value, const std::vector<Tensor>& parameters) {
  if (!value.requires_grad()) return true;
  const auto gradients = torch::autograd::grad({value.sum()}, parameters, /*grad_outputs=*/{}, /*retain_graph=*/true,
                                               /*create_graph=*/false, /*allow_unused=*/true);
  for (const auto& gradient : gradients) {
    if (gradient.defined() && !gradient.isfinite().all().item<bool>()) return false;
  }
  return true;
}

}  // namespace

std::string broken_column(const std::vector<std::string>& columns, const std::vector<double>& values) {
  for (std::size_t i = 1; i < columns.size(); ++i) {
    if (!std::isfinite(values[i])) return columns[i];
  }
  return columns.front();
}

std::string broken_gradient(ImageModel& model, const Objective& objective) {
  const torch::AutoGradMode with_gradients(true);
  std::vector<Tensor> parameters;
  for (const auto& parameter : trained_parameters(model, objective)) parameters.push_back(parameter.tensor);
  const auto value = objective.evaluate(model);
  if (!has_finite_gradient(value.nll, parameters)) return "nll";
  for (std::size_t i = 0; i < value.terms.size(); ++i) {
    if (!has_finite_gradient(value.terms[i], parameters)) return objective.terms()[i].name();
  }
  return {};
}

std::string diagnose(const Breakdown& breakdown, ImageModel& model, const Objective& objective) {
  const auto smaller = fmt::format("try a smaller learning rate than {:g}", breakdown.learning_rate);
  if (breakdown.where == Breakdown::Where::loss) {
    const auto columns = objective.columns();
    const auto column = broken_column(columns, breakdown.values);
    const auto index = static_cast<std::size_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
    const auto fact = fmt::format("{} is {} at epoch {}", column, breakdown.values[index], breakdown.epoch);
    if (breakdown.epoch > 0) return fmt::format("{}: {}, or another optimiser", fact, smaller);
    return fmt::format("{}, before any update: the start image or the settings of {} do not allow it; try another start image",
                       fact, column);
  }
  // Evaluating may move what a likelihood goes on from: that stays where the last good epoch left it.
  auto& likelihood = objective.likelihood();
  const auto state = likelihood.working_state();
  const auto column = broken_gradient(model, objective);
  if (!state.empty()) likelihood.load_working_state(state);
  if (column.empty()) return fmt::format("the update of epoch {} overflowed: {}", breakdown.epoch, smaller);
  return fmt::format(
      "the gradient of {} is not finite at epoch {}: it must be differentiable at every image that the model can "
      "make (no square root or logarithm at 0); if it is, {}",
      column, breakdown.epoch, smaller);
}

}  // namespace mpol::detail
