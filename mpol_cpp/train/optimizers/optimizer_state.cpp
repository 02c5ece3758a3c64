#include <mpol_cpp/train/optimizers/optimizer_state.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <sstream>
#include <type_traits>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/archive.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/train/optimizers/saved_tensors.h>

namespace mpol::detail {
namespace {

using torch::optim::AdamParamState;
using torch::optim::LBFGSParamState;
using torch::optim::Optimizer;
using torch::optim::SGDParamState;

template <typename State>
State* state_of(Optimizer& optimizer, const Tensor& parameter) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  return found == optimizer.state().end() ? nullptr : static_cast<State*>(found->second.get());
}

Tensor scalar(std::int64_t value) { return at::scalar_tensor(value, torch::kInt64); }
Tensor scalar(double value) { return at::scalar_tensor(value, torch::kFloat64); }

void save_adam(Optimizer& optimizer, const NamedParameter& parameter, NamedTensors& saved) {
  const auto* state = state_of<AdamParamState>(optimizer, parameter.tensor);
  if (state == nullptr) return;
  saved[parameter.name + ".step"] = scalar(state->step());
  saved[parameter.name + ".exp_avg"] = state->exp_avg().clone();
  saved[parameter.name + ".exp_avg_sq"] = state->exp_avg_sq().clone();
}

void load_adam(Optimizer& optimizer, const NamedParameter& parameter, SavedTensors& saved) {
  if (!saved.has(parameter.name + ".step")) return;
  auto state = std::make_unique<AdamParamState>();
  state->step(saved.take_number<std::int64_t>(parameter.name + ".step"));
  state->exp_avg(saved.take_like(parameter.name + ".exp_avg", parameter.tensor));
  state->exp_avg_sq(saved.take_like(parameter.name + ".exp_avg_sq", parameter.tensor));
  optimizer.state()[parameter.tensor.unsafeGetTensorImpl()] = std::move(state);
}

void save_sgd(Optimizer& optimizer, const NamedParameter& parameter, NamedTensors& saved) {
  const auto* state = state_of<SGDParamState>(optimizer, parameter.tensor);
  if (state == nullptr || !state->momentum_buffer().defined()) return;
  saved[parameter.name + ".momentum_buffer"] = state->momentum_buffer().clone();
}

void load_sgd(Optimizer& optimizer, const NamedParameter& parameter, SavedTensors& saved) {
  if (!saved.has(parameter.name + ".momentum_buffer")) return;
  auto state = std::make_unique<SGDParamState>();
  state->momentum_buffer(saved.take_like(parameter.name + ".momentum_buffer", parameter.tensor));
  optimizer.state()[parameter.tensor.unsafeGetTensorImpl()] = std::move(state);
}

std::string numbered(const std::string& name, std::size_t i) { return fmt::format("{}.{:04}", name, i); }

// L-BFGS keeps one state for all parameters, at the first. The vectors of its history are never changed once they are
// in it, so that they can be shared instead of copied.

void save_lbfgs(Optimizer& optimizer, const Tensor& first_parameter, NamedTensors& saved) {
  const auto* state = state_of<LBFGSParamState>(optimizer, first_parameter);
  if (state == nullptr) return;
  saved["func_evals"] = scalar(state->func_evals());
  saved["n_iter"] = scalar(state->n_iter());
  saved["t"] = scalar(state->t());
  saved["prev_loss"] = scalar(state->prev_loss());
  const auto copy = [&](const char* name, const Tensor& tensor) {
    if (tensor.defined()) saved[name] = tensor.clone();
  };
  copy("d", state->d());
  copy("H_diag", state->H_diag());
  copy("prev_flat_grad", state->prev_flat_grad());
  const auto share = [&](const char* name, const std::deque<Tensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) saved[numbered(name, i)] = tensors[i];
  };
  share("old_dirs", state->old_dirs());
  share("old_stps", state->old_stps());
  share("ro", state->ro());
}

/// LibTorch takes it for granted that the three lists of the history are of one length.
void check_history(const LBFGSParamState& state, std::int64_t numel) {
  const auto pairs = state.old_dirs().size();
  bool fits = state.old_stps().size() == pairs && state.ro().size() == pairs;
  for (std::size_t i = 0; fits && i < pairs; ++i) {
    fits = state.old_dirs()[i].numel() == numel && state.old_stps()[i].numel() == numel && state.ro()[i].numel() == 1;
  }
  // A search that has begun has a direction, and what it came from.
  fits = fits && (state.n_iter() == 0 || (state.d().defined() && state.H_diag().defined() && state.prev_flat_grad().defined()));
  if (fits) return;
  throw FileError(fmt::format("the optimiser's state has a broken history: {} old_dirs, {} old_stps, {} ro of {} parameters",
                              pairs, state.old_stps().size(), state.ro().size(), numel));
}

void load_lbfgs(Optimizer& optimizer, const std::vector<NamedParameter>& parameters, SavedTensors& saved) {
  if (!saved.has("n_iter")) return;
  const auto& first = parameters.front().tensor;
  std::int64_t numel = 0;
  for (const auto& parameter : parameters) numel += parameter.tensor.numel();

  const auto on_device = [&](const std::string& name) {
    const auto tensor = saved.take(name);
    // Numbers have a type of their own: LibTorch begins with a whole number for H_diag.
    if (tensor.dim() > 0 && (tensor.numel() != numel || tensor.scalar_type() != first.scalar_type())) {
      throw FileError(fmt::format("the optimiser's state {} has {} elements of {}, the parameters have {} of {}", name,
                                  tensor.numel(), c10::toString(tensor.scalar_type()), numel,
                                  c10::toString(first.scalar_type())));
    }
    return tensor.to(first.device());
  };
  const auto take_numbered = [&](const char* name) {
    std::deque<Tensor> tensors;
    while (saved.has(numbered(name, tensors.size()))) tensors.push_back(on_device(numbered(name, tensors.size())));
    return tensors;
  };
  auto state = std::make_unique<LBFGSParamState>();
  state->func_evals(saved.take_number<std::int64_t>("func_evals"));
  state->n_iter(saved.take_number<std::int64_t>("n_iter"));
  state->t(saved.take_number<double>("t"));
  state->prev_loss(saved.take_number<double>("prev_loss"));
  if (saved.has("d")) state->d(on_device("d").clone());
  if (saved.has("H_diag")) state->H_diag(on_device("H_diag").clone());
  if (saved.has("prev_flat_grad")) state->prev_flat_grad(on_device("prev_flat_grad").clone());
  state->old_dirs(take_numbered("old_dirs"));
  state->old_stps(take_numbered("old_stps"));
  state->ro(take_numbered("ro"));
  check_history(*state, numel);
  optimizer.state()[first.unsafeGetTensorImpl()] = std::move(state);
}

/// What the optimizer itself saves.
Tensor archived(Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  const auto text = std::move(stream).str();
  const auto bytes = at::empty({static_cast<std::int64_t>(text.size())}, torch::kUInt8);
  std::copy(text.begin(), text.end(), bytes.mutable_data_ptr<std::uint8_t>());
  return bytes;
}

void load_archive(Optimizer& optimizer, const Tensor& saved) {
  const auto bytes = saved.to(torch::kCPU).contiguous();
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>()),
                      static_cast<std::size_t>(bytes.numel()));
    optimizer.load(archive);
  } catch (const c10::Error& error) {
    throw FileError(fmt::format("the state of the optimizer cannot be read: {}", error.what_without_backtrace()));
  }
}

std::unique_ptr<Optimizer> checked(std::unique_ptr<Optimizer> optimizer, const std::vector<Tensor>& parameters) {
  if (optimizer == nullptr) throw ValueError("the maker of an optimizer gave none");
  std::size_t count = 0;
  for (const auto& group : optimizer->param_groups()) count += group.params().size();
  if (count != parameters.size()) {
    throw ValueError(
        fmt::format("the optimizer has {} parameters, the fit {}: make it for those that it is given", count, parameters.size()));
  }
  return optimizer;
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const TrainOptions& options, const std::vector<NamedParameter>& named) {
  std::vector<Tensor> parameters;
  parameters.reserve(named.size());
  for (const auto& parameter : named) parameters.push_back(parameter.tensor);
  const double learning_rate = options.learning_rate();
  switch (options.optimizer()) {
    case OptimizerKind::adam:
      return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                  torch::optim::AdamOptions(learning_rate)
                                                      .betas({options.betas().first, options.betas().second})
                                                      .weight_decay(options.weight_decay()));
    case OptimizerKind::sgd:
      return std::make_unique<torch::optim::SGD>(
          std::move(parameters),
          torch::optim::SGDOptions(learning_rate).momentum(options.momentum()).weight_decay(options.weight_decay()));
    case OptimizerKind::lbfgs:
      // No tolerances of its own: the trainer's stop criterion says when a fit has converged.
      return std::make_unique<torch::optim::LBFGS>(
          std::move(parameters),
          torch::optim::LBFGSOptions(learning_rate).line_search_fn("strong_wolfe").tolerance_grad(0).tolerance_change(0));
    case OptimizerKind::own:
      return checked(options.own_optimizer()->make(parameters), parameters);
    case OptimizerKind::pogm:
    case OptimizerKind::fista:
    case OptimizerKind::admm:
      break;  // PogmStep
  }
  throw ValueError(fmt::format("LibTorch has no optimizer {}", to_string(options.optimizer())));
}

void set_learning_rate(Optimizer& optimizer, double learning_rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(learning_rate);
}

NamedTensors optimizer_state(OptimizerKind kind, Optimizer& optimizer, const std::vector<NamedParameter>& parameters) {
  const torch::NoGradGuard no_grad;
  NamedTensors saved;
  if (kind == OptimizerKind::own) return {{"archive", archived(optimizer)}};
  if (kind == OptimizerKind::lbfgs) {
    save_lbfgs(optimizer, parameters.front().tensor, saved);
    return saved;
  }
  for (const auto& parameter : parameters) {
    if (kind == OptimizerKind::adam) save_adam(optimizer, parameter, saved);
    else save_sgd(optimizer, parameter, saved);
  }
  return saved;
}

void load_optimizer_state(OptimizerKind kind, Optimizer& optimizer, const std::vector<NamedParameter>& parameters,
                          const NamedTensors& state) {
  const torch::NoGradGuard no_grad;
  SavedTensors saved(state);
  optimizer.state().clear();
  if (kind == OptimizerKind::own) load_archive(optimizer, saved.take("archive"));
  if (kind == OptimizerKind::lbfgs) load_lbfgs(optimizer, parameters, saved);
  for (const auto& parameter : parameters) {
    if (kind == OptimizerKind::adam) load_adam(optimizer, parameter, saved);
    else if (kind == OptimizerKind::sgd) load_sgd(optimizer, parameter, saved);
  }
  saved.check_empty();
}

}  // namespace mpol::detail
