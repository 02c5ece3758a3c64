#include <mpol_cpp/train/optimizers/lbfgs_memory.h>

#include <string>
#include <utility>

#include <ATen/ops/scalar_tensor.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/train/optimizers/saved_tensors.h>

namespace mpol::detail {
namespace {

std::string pair_name(const char* name, std::size_t i) { return fmt::format("{}.{:04}", name, i); }

}  // namespace

NamedTensors save_lbfgs(const ops::LbfgsMemory& memory, torch::Dtype dtype) {
  const auto number = [](double value, torch::Dtype kind) { return at::scalar_tensor(value, kind); };
  NamedTensors saved;
  if (memory.evaluations == 0) return saved;
  saved["func_evals"] = at::scalar_tensor(memory.evaluations, torch::kInt64);
  saved["n_iter"] = at::scalar_tensor(memory.iterations, torch::kInt64);
  saved["t"] = number(memory.step, torch::kFloat64);
  saved["prev_loss"] = number(memory.previous_value, torch::kFloat64);
  if (memory.iterations == 0) return saved;
  saved["d"] = memory.direction;
  saved["prev_flat_grad"] = memory.gradient;
  saved["H_diag"] = number(memory.scale, dtype);
  for (std::size_t i = 0; i < memory.moves.size(); ++i) {
    saved[pair_name("old_stps", i)] = memory.moves[i];
    saved[pair_name("old_dirs", i)] = memory.changes[i];
    saved[pair_name("ro", i)] = number(1.0 / memory.curvatures[i], dtype);
  }
  return saved;
}

ops::LbfgsMemory load_lbfgs(NamedTensors tensors, std::int64_t elements) {
  SavedTensors saved(std::move(tensors));
  ops::LbfgsMemory memory;
  if (saved.has("n_iter")) {
    memory.evaluations = saved.take("func_evals").item<std::int64_t>();
    memory.iterations = saved.take("n_iter").item<std::int64_t>();
    memory.step = saved.take("t").item<double>();
    memory.previous_value = saved.take("prev_loss").item<double>();
  }
  if (memory.iterations > 0) {
    memory.direction = saved.take_vector("d", elements);
    memory.gradient = saved.take_vector("prev_flat_grad", elements);
    memory.scale = saved.take("H_diag").item<double>();
    for (std::size_t i = 0; saved.has(pair_name("old_stps", i)); ++i) {
      memory.moves.push_back(saved.take_vector(pair_name("old_stps", i), elements));
      memory.changes.push_back(saved.take_vector(pair_name("old_dirs", i), elements));
      memory.curvatures.push_back(1.0 / saved.take(pair_name("ro", i)).item<double>());
    }
  }
  saved.check_empty();
  return memory;
}

}  // namespace mpol::detail
