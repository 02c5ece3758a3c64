#include <mpol_cpp/train/optimizers/moments.h>

#include <utility>

#include <ATen/ops/scalar_tensor.h>

#include <mpol_cpp/train/optimizers/saved_tensors.h>

namespace mpol::detail {
NamedTensors save_moments(OptimizerKind kind, const std::vector<Moments>& moments, std::int64_t steps) {
  const torch::NoGradGuard no_grad;
  NamedTensors saved;
  if (steps == 0) return saved;
  for (const auto& [parameter, first, second] : moments) {
    if (kind == OptimizerKind::adam) {
      saved[parameter.name + ".step"] = at::scalar_tensor(steps, torch::kInt64);
      saved[parameter.name + ".exp_avg"] = first.clone();
      saved[parameter.name + ".exp_avg_sq"] = second.clone();
    } else if (first.defined()) {
      saved[parameter.name + ".momentum_buffer"] = first.clone();
    }
  }
  return saved;
}

std::int64_t load_moments(OptimizerKind kind, const std::vector<Moments>& moments, NamedTensors tensors) {
  const torch::NoGradGuard no_grad;
  for (const auto& [parameter, first, second] : moments) {
    if (first.defined()) first.zero_();
    if (second.defined()) second.zero_();
  }
  SavedTensors saved(std::move(tensors));
  if (saved.is_empty()) return 0;
  std::int64_t steps = 1;  // gradient descent does not count
  for (const auto& [parameter, first, second] : moments) {
    if (kind == OptimizerKind::adam) {
      saved.copy_to(first, parameter.name + ".exp_avg");
      saved.copy_to(second, parameter.name + ".exp_avg_sq");
      steps = saved.take_number<std::int64_t>(parameter.name + ".step");
    } else if (first.defined()) {
      saved.copy_to(first, parameter.name + ".momentum_buffer");
    }
  }
  saved.check_empty();
  return steps;
}

}  // namespace mpol::detail
