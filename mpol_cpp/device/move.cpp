#include <mpol_cpp/device/move.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/device/tensor_data.h>

namespace mpol::detail {
namespace {

using TensorFunction = std::function<void(Tensor&)>;

/// Calls a function on a member of an optimiser's state, which is reached by an accessor of the same name.
#define MPOL_STATE_TENSOR(name) \
  if (state.name().defined()) function(state.name())

void visit_adam_moments(auto& state, const TensorFunction& function) {
  MPOL_STATE_TENSOR(exp_avg);
  MPOL_STATE_TENSOR(exp_avg_sq);
  MPOL_STATE_TENSOR(max_exp_avg_sq);
}
void visit_state(torch::optim::AdamParamState& state, const TensorFunction& function) { visit_adam_moments(state, function); }
void visit_state(torch::optim::AdamWParamState& state, const TensorFunction& function) { visit_adam_moments(state, function); }
void visit_state(torch::optim::SGDParamState& state, const TensorFunction& function) { MPOL_STATE_TENSOR(momentum_buffer); }
void visit_state(torch::optim::AdagradParamState& state, const TensorFunction& function) { MPOL_STATE_TENSOR(sum); }
void visit_state(torch::optim::RMSpropParamState& state, const TensorFunction& function) {
  MPOL_STATE_TENSOR(square_avg);
  MPOL_STATE_TENSOR(momentum_buffer);
  MPOL_STATE_TENSOR(grad_avg);
}
void visit_state(torch::optim::LBFGSParamState& state, const TensorFunction& function) {
  MPOL_STATE_TENSOR(d);
  MPOL_STATE_TENSOR(H_diag);
  MPOL_STATE_TENSOR(prev_flat_grad);
  for (auto* list : {&state.old_dirs(), &state.old_stps(), &state.ro()}) std::for_each(list->begin(), list->end(), function);
  if (!state.al()) return;
  for (auto& tensor : *state.al()) {
    if (tensor.defined()) function(tensor);
  }
}

#undef MPOL_STATE_TENSOR

/// Visits a state of one of these types; false when it is of none.
template <typename... States>
bool visit_any_state(torch::optim::OptimizerParamState& state, const TensorFunction& function) {
  const auto visit_as = [&](auto* known) {
    if (known != nullptr) visit_state(*known, function);
    return known != nullptr;
  };
  return (visit_as(dynamic_cast<States*>(&state)) || ...);
}

void visit_optimizer_state(torch::optim::Optimizer& optimizer, const TensorFunction& function) {
  using namespace torch::optim;
  for (auto& entry : optimizer.state()) {
    const bool known =
        visit_any_state<AdamParamState, AdamWParamState, SGDParamState, AdagradParamState, RMSpropParamState, LBFGSParamState>(
            *entry.second, function);
    if (!known) {
      throw DeviceError(
          "an optimiser's state is of an unknown type and cannot be moved: move before its first step, or use "
          "Adam, AdamW, SGD, RMSprop, Adagrad or LBFGS");
    }
  }
}

bool in_place(const Tensor& tensor) { return tensor.requires_grad() && tensor.is_leaf(); }

/// Takes the buffers that are no real numbers out of a module while it lives, and puts them back with their own dtype:
/// complex ones with that of the precision of `dtype`.
class SparedBuffers {
 public:
  SparedBuffers(torch::nn::Module& module, torch::Dtype dtype) : dtype_(dtype) {
    for (auto& buffer : module.buffers()) {
      if (!buffer.defined() || buffer.is_floating_point()) continue;
      values_.emplace_back(buffer, buffer.detach().alias());
      replace_data(buffer, at::empty({0}, buffer.options().dtype(dtype)));
    }
  }
  ~SparedBuffers() {
    for (auto& [buffer, value] : values_) replace_data(buffer, value.to(target_dtype(value, dtype_)));
  }
  SparedBuffers(const SparedBuffers&) = delete;
  SparedBuffers& operator=(const SparedBuffers&) = delete;

 private:
  torch::Dtype dtype_;
  std::vector<std::pair<Tensor, Tensor>> values_;  // the buffer, what it held
};

class Mover : public LeafVisitor {
 public:
  Mover(torch::Device device, std::optional<torch::Dtype> dtype) : device_(device), dtype_(dtype) {}

  void tensor(Tensor& tensor, const std::string&) override {
    if (!tensor.defined()) return;
    if (in_place(tensor)) {
      if (!is_there(tensor)) replace_data(tensor, moved(tensor.detach()));
      if (auto& gradient = tensor.mutable_grad(); gradient.defined() && !is_there(gradient)) gradient = moved(gradient);
      return;
    }
    if (is_there(tensor)) return;
    auto& done = done_[tensor.unsafeGetTensorImpl()];
    if (!done.second.defined()) done = {tensor, moved(tensor)};
    tensor = done.second;
  }

  void module(torch::nn::Module& module, const std::string&) override {
    // Tensor by tensor, since LibTorch's modules cannot move to every device; then in the module's own way, which may do more.
    for (auto& parameter : module.parameters()) to_device(parameter);
    for (auto& buffer : module.buffers()) to_device(buffer);
    module.to(device_);
    if (dtype_) cast(module);
  }

  void optimizer(torch::optim::Optimizer& optimizer, const std::string& path) override {
    for (auto& group : optimizer.param_groups()) {
      for (auto& parameter : group.params()) tensor(parameter, path);
    }
    visit_optimizer_state(optimizer, [&](Tensor& state) { tensor(state, path); });
  }

 private:
  torch::Dtype wanted_dtype(const Tensor& tensor) const { return dtype_ ? target_dtype(tensor, *dtype_) : tensor.scalar_type(); }
  bool is_there(const Tensor& tensor) const {
    const bool same_index = !device_.has_index() || tensor.device().index() == device_.index();
    return tensor.device().type() == device_.type() && same_index && tensor.scalar_type() == wanted_dtype(tensor);
  }
  void to_device(Tensor& tensor) const {
    if (!tensor.defined()) return;
    if (tensor.device() != device_) replace_data(tensor, tensor.detach().to(device_));
    if (auto& gradient = tensor.mutable_grad(); gradient.defined()) gradient = gradient.to(device_);
  }
  /// A module that is not ours would cast complex buffers to real and indices to floating point: they are spared.
  void cast(torch::nn::Module& module) const {
    SparedBuffers spared(module, *dtype_);
    module.to(*dtype_);
  }
  Tensor moved(const Tensor& tensor) const { return tensor.to(device_, wanted_dtype(tensor)); }

  torch::Device device_;
  std::optional<torch::Dtype> dtype_;
  std::unordered_map<at::TensorImpl*, std::pair<Tensor, Tensor>> done_;  // as it was, which keeps the key alive, and moved
};

/// Puts copies in the place of tensors and modules.
class Copier : public LeafVisitor {
 public:
  explicit Copier(torch::Device device) : device_(device) {}

  void tensor(Tensor& tensor, const std::string&) override {
    if (!tensor.defined() || tensor.device() == device_) return;
    auto& done = tensors_[tensor.unsafeGetTensorImpl()];
    if (!done.second.defined()) done = {tensor, copied(tensor)};
    tensor = done.second;
  }
  void module(torch::nn::Module&, const std::string& path) override { refuse(path, "a module by value: give its holder"); }
  void optimizer(torch::optim::Optimizer&, const std::string& path) override {
    refuse(path, "an optimiser, which belongs to its parameters: save_optimizer keeps its state");
  }
  std::shared_ptr<torch::nn::Module> replacement(torch::nn::Module& module, const std::string&) override {
    auto& done = modules_[&module];
    if (!done) {
      done = module.clone();
      make_mover(device_, std::nullopt)->module(*done, "copy");
    }
    return done;
  }

 private:
  [[noreturn]] static void refuse(const std::string& path, const char* what) {
    throw ValueError(fmt::format("{} cannot be copied: it is {}; move_to moves it", path, what));
  }
  Tensor copied(const Tensor& tensor) const {
    if (!tensor.requires_grad() || !tensor.is_leaf()) return tensor.to(device_);
    return tensor.detach().to(device_).set_requires_grad(true);  // a leaf again
  }

  torch::Device device_;
  std::unordered_map<at::TensorImpl*, std::pair<Tensor, Tensor>> tensors_;  // as it was, which keeps the key alive, and copied
  std::unordered_map<const torch::nn::Module*, std::shared_ptr<torch::nn::Module>> modules_;
};

/// Calls a function for tensors, wherever they are.
class TensorVisitor : public LeafVisitor {
 public:
  explicit TensorVisitor(std::function<void(const Tensor&, const std::string&)> function) : function_(std::move(function)) {}

  void tensor(Tensor& tensor, const std::string& path) override {
    if (tensor.defined()) function_(tensor, path);
  }
  void module(torch::nn::Module& module, const std::string& path) override {
    for (auto& item : module.named_parameters()) tensor(item.value(), path + "." + item.key());
    for (auto& item : module.named_buffers()) tensor(item.value(), path + "." + item.key());
  }
  void optimizer(torch::optim::Optimizer& optimizer, const std::string& path) override {
    for (auto& group : optimizer.param_groups()) {
      for (auto& parameter : group.params()) tensor(parameter, path + ".parameters");
    }
    visit_optimizer_state(optimizer, [&](Tensor& state) { tensor(state, path + ".state"); });
  }

 private:
  std::function<void(const Tensor&, const std::string&)> function_;
};

}  // namespace

std::unique_ptr<LeafVisitor> make_copier(torch::Device device) {
  check_device(device);
  return std::make_unique<Copier>(device);
}

std::unique_ptr<LeafVisitor> make_tensor_visitor(const std::function<void(const Tensor&, const std::string&)>& function) {
  return std::make_unique<TensorVisitor>(function);
}

std::unique_ptr<LeafVisitor> make_mover(torch::Device device, std::optional<torch::Dtype> dtype) {
  check_device(device);
  if (dtype && *dtype != torch::kFloat32 && *dtype != torch::kFloat64) {
    throw ValueError(fmt::format("objects are cast to float32 or float64, not {}: choose torch::kFloat32 or torch::kFloat64",
                                 c10::toString(*dtype)));
  }
  return std::make_unique<Mover>(device, dtype);
}

void DeviceFinder::add(const Tensor& tensor, const std::string& path) { leaves_.emplace_back(tensor.device(), path); }

torch::Device DeviceFinder::found() const {
  if (leaves_.empty()) throw ValueError("the object has no tensor, and so no device: give it one, or name the device yourself");
  const auto first = leaves_.front().first;
  if (std::all_of(leaves_.begin(), leaves_.end(), [&](const auto& leaf) { return leaf.first == first; })) return first;
  constexpr std::size_t most_named = 12;
  std::string list;
  for (std::size_t i = 0; i < std::min(leaves_.size(), most_named); ++i) {
    list += fmt::format("{}{} on {}", i == 0 ? "" : ", ", leaves_[i].second, leaves_[i].first.str());
  }
  if (leaves_.size() > most_named) list += ", …";
  throw DeviceError(fmt::format("the parts of an object are on different devices: {}; move_to puts them on one", list));
}

}  // namespace mpol::detail
