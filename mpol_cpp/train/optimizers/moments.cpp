#include <mpol_cpp/train/optimizers/moments.h>

#include <ATen/ops/scalar_tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::detail {
namespace {

Tensor take_saved(NamedTensors& saved, const std::string& name) {
  auto node = saved.extract(name);
  if (node.empty()) throw FileError(fmt::format("the optimiser's state has no {}", name));
  return node.mapped();
}

void copy_saved(const Tensor& to, NamedTensors& saved, const std::string& name) {
  const auto from = take_saved(saved, name);
  if (from.sizes() != to.sizes()) {
    throw FileError(fmt::format("the optimiser's state {} has shape {}, its parameter has shape {}", name, from.sizes().vec(),
                                to.sizes().vec()));
  }
  to.copy_(from);
}

}  // namespace

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

std::int64_t load_moments(OptimizerKind kind, const std::vector<Moments>& moments, NamedTensors saved) {
  const torch::NoGradGuard no_grad;
  for (const auto& [parameter, first, second] : moments) {
    if (first.defined()) first.zero_();
    if (second.defined()) second.zero_();
  }
  if (saved.empty()) return 0;
  std::int64_t steps = 1;  // gradient descent does not count
  for (const auto& [parameter, first, second] : moments) {
    if (kind == OptimizerKind::adam) {
      copy_saved(first, saved, parameter.name + ".exp_avg");
      copy_saved(second, saved, parameter.name + ".exp_avg_sq");
      steps = take_saved(saved, parameter.name + ".step").item<std::int64_t>();
    } else if (first.defined()) {
      copy_saved(first, saved, parameter.name + ".momentum_buffer");
    }
  }
  if (!saved.empty()) throw FileError(fmt::format("the optimiser's state has an unknown {}", saved.begin()->first));
  return steps;
}

}  // namespace mpol::detail
