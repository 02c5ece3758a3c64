#include <mpol_cpp/ops/lbfgs/gpu_lbfgs.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_launch.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t most_groups = 128;  // of a pair's elements: enough blocks for a GPU when there are many pairs

static_assert(std::is_trivially_copyable_v<LbfgsState>, "the state lies on the device");

}  // namespace

GpuLbfgs::GpuLbfgs(const GpuLbfgsSettings& settings) : settings_(settings) {
  if (settings.elements < 1 || settings.piece < 1) {
    throw ValueError(
        fmt::format("{} elements in pieces of {}: at least one of each is needed", settings.elements, settings.piece));
  }
  if (settings.dtype != torch::kFloat32 && settings.dtype != torch::kFloat64) {
    throw ValueError(fmt::format("L-BFGS computes in float32 or float64, not in {}", c10::toString(settings.dtype)));
  }
  const auto real = torch::TensorOptions(settings.dtype).device(settings.device);
  const auto numbers = torch::TensorOptions(torch::kFloat64).device(settings.device);
  const auto elements = settings.elements;
  constexpr auto slots = LbfgsLimits::slots;
  pieces_ = (elements + settings.piece - 1) / settings.piece;
  groups_ = std::min(pieces_, most_groups);
  origin_ = at::zeros({elements}, real);
  direction_ = at::zeros({elements}, real);
  start_gradient_ = at::zeros({elements}, real);
  kept_ = at::zeros({2, elements}, real);
  moves_ = at::zeros({slots, elements}, real);
  changes_ = at::zeros({slots, elements}, real);
  piece_values_ = at::zeros({2, pieces_}, numbers);
  group_products_ = at::zeros({pair_products, slots, groups_}, numbers);
  move_change_ = at::zeros({slots, slots}, numbers);
  change_change_ = at::zeros({slots, slots}, numbers);
  inverse_ = at::zeros({slots, slots}, numbers);
  gradient_products_ = at::zeros({2, slots}, numbers);
  factors_ = at::zeros({2 * slots + 1}, numbers);
  rate_ = at::zeros({1}, numbers);
  phase_ = at::zeros({1}, torch::TensorOptions(torch::kInt64).device(settings.device));
  state_ = at::zeros({sizeof(LbfgsState)}, torch::TensorOptions(torch::kUInt8).device(settings.device));
  LbfgsState state{};
  state.scale = 1;
  write_state(state);
}

void GpuLbfgs::begin(double first_trial) {
  if (first_trial != first_trial_) rate_.fill_(first_trial_ = first_trial);
  phase_.fill_(static_cast<std::int64_t>(LbfgsPhase::begin));
}

void GpuLbfgs::enqueue(const Tensor& position, const Tensor& gradient, const Tensor& values,
                       const std::function<void()>& evaluate) {
  check_vector(position, "position");
  check_vector(gradient, "gradient");
  if (values.scalar_type() != torch::kFloat64 || values.device() != settings_.device || !values.is_contiguous()) {
    throw ValueError(fmt::format("the values of L-BFGS are {} on {}; it needs float64 on {}", c10::toString(values.scalar_type()),
                                 values.device().str(), settings_.device.str()));
  }
  run({LbfgsKernel::move}, position, gradient, values);
  evaluate();
  run({LbfgsKernel::measure, LbfgsKernel::judge, LbfgsKernel::take, LbfgsKernel::correlate, LbfgsKernel::sum_up,
       LbfgsKernel::direct, LbfgsKernel::steer, LbfgsKernel::aim},
      position, gradient, values);
}

bool GpuLbfgs::at_rest() const { return phase_.item<std::int64_t>() == static_cast<std::int64_t>(LbfgsPhase::rest); }

LbfgsMemory GpuLbfgs::memory() {
  const torch::NoGradGuard no_grad;
  const auto state = read_state();
  const auto pairs = LbfgsPairs::of(state.pairs);
  LbfgsMemory memory{state.iterations, state.evaluations, state.scale, state.step, state.previous_value, {}, {}, {}, {}, {}};
  memory.direction = direction_.clone();
  memory.gradient = start_gradient_.clone();
  const auto products = move_change_.diagonal().to(torch::kCPU).contiguous();
  copied_.erase(copied_.begin(), copied_.lower_bound(pairs.oldest));
  for (std::int64_t k = 0; k < pairs.count; ++k) {
    const auto slot = pairs.slot(k);
    auto& pair = copied_[pairs.oldest + k];
    if (!pair.move.defined()) pair = {moves_[slot].clone(), changes_[slot].clone()};
    memory.moves.push_back(pair.move);
    memory.changes.push_back(pair.change);
    memory.curvatures.push_back(products.const_data_ptr<double>()[slot]);
  }
  return memory;
}

void GpuLbfgs::restore(const LbfgsMemory& memory) {
  const torch::NoGradGuard no_grad;
  const auto count = static_cast<std::int64_t>(memory.moves.size());
  if (count > LbfgsLimits::history || memory.changes.size() != memory.moves.size()) {
    throw ValueError(fmt::format("{} moves and {} changes of L-BFGS: it keeps as many of both, at most {}", count,
                                 memory.changes.size(), static_cast<int>(LbfgsLimits::history)));
  }
  const auto take_up = [&](const Tensor& to, const Tensor& from) {
    if (!from.defined() || from.numel() != settings_.elements) {
      throw ValueError(fmt::format("a vector of L-BFGS has {} elements, the parameters have {}",
                                   from.defined() ? from.numel() : 0, settings_.elements));
    }
    to.copy_(from.flatten());
  };
  copied_.clear();
  LbfgsState state{};
  state.iterations = memory.iterations, state.evaluations = memory.evaluations;
  state.scale = memory.scale, state.step = memory.step, state.previous_value = memory.previous_value;
  phase_.fill_(static_cast<std::int64_t>(LbfgsPhase::rest));
  if (memory.iterations > 0) {
    take_up(direction_, memory.direction);
    take_up(start_gradient_, memory.gradient);
  }
  // The products are made as they were when each pair was the new one, to the last bit.
  state.advance = true;
  for (std::int64_t k = 0; k < count; ++k) {
    take_up(moves_[k], memory.moves[static_cast<std::size_t>(k)]);
    take_up(changes_[k], memory.changes[static_cast<std::size_t>(k)]);
    state.pairs = k;
    write_state(state);
    run({LbfgsKernel::correlate, LbfgsKernel::sum_up, LbfgsKernel::direct}, {}, {}, {});
  }
  if (count > 0) {
    const auto newest = count - 1;
    state.scale = (move_change_[newest][newest] / change_change_[newest][newest]).item<double>();
  }
  state.advance = false;
  state.pairs = count;
  write_state(state);
}

std::int64_t GpuLbfgs::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto* tensor : {&origin_, &direction_, &start_gradient_, &kept_, &moves_, &changes_, &piece_values_,
                             &group_products_, &move_change_, &change_change_, &inverse_}) {
    bytes += tensor->nbytes();
  }
  return static_cast<std::int64_t>(bytes);
}

template <typename T>
LbfgsArrays<T> GpuLbfgs::arrays(const Tensor& position, const Tensor& gradient, const Tensor& values) const {
  LbfgsArrays<T> arrays{};
  arrays.elements = settings_.elements;
  arrays.problems = values.defined() ? values.numel() : 0;
  arrays.pieces = pieces_;
  arrays.groups = groups_;
  arrays.position = device_array<T>(position);
  arrays.gradient = device_array<const T>(gradient);
  arrays.values = device_array<const double>(values);
  arrays.origin = device_array<T>(origin_);
  arrays.direction = device_array<T>(direction_);
  arrays.start_gradient = device_array<T>(start_gradient_);
  arrays.kept = device_array<T>(kept_);
  arrays.moves = device_array<T>(moves_);
  arrays.changes = device_array<T>(changes_);
  arrays.piece_values = device_array<double>(piece_values_);
  arrays.group_products = device_array<double>(group_products_);
  arrays.move_change = device_array<double>(move_change_);
  arrays.change_change = device_array<double>(change_change_);
  arrays.inverse = device_array<double>(inverse_);
  arrays.gradient_products = device_array<double>(gradient_products_);
  arrays.factors = device_array<double>(factors_);
  arrays.state = {static_cast<LbfgsState*>(state_.data_ptr()), 1};
  arrays.phase = device_array<std::int64_t>(phase_);
  arrays.rate = device_array<const double>(rate_);
  return arrays;
}

void GpuLbfgs::run(const std::vector<LbfgsKernel>& kernels, const Tensor& position, const Tensor& gradient,
                   const Tensor& values) const {
  const c10::DeviceGuard guard(settings_.device);
  const auto run_with = [&](const auto& arrays) {
    for (const auto kernel : kernels) run_kernel(kernel, arrays, settings_.device, settings_.order);
  };
  if (settings_.dtype == torch::kFloat64) run_with(arrays<double>(position, gradient, values));
  else run_with(arrays<float>(position, gradient, values));
}

void GpuLbfgs::check_vector(const Tensor& tensor, const char* name) const {
  if (tensor.scalar_type() != settings_.dtype || tensor.device() != settings_.device || !tensor.is_contiguous() ||
      tensor.numel() != settings_.elements) {
    throw ValueError(fmt::format("{} is {} of shape {} on {}; L-BFGS was made for {} elements of {} on {}", name,
                                 c10::toString(tensor.scalar_type()), tensor.sizes().vec(), tensor.device().str(),
                                 settings_.elements, c10::toString(settings_.dtype), settings_.device.str()));
  }
}

LbfgsState GpuLbfgs::read_state() const {
  const auto bytes = state_.to(torch::kCPU);
  LbfgsState state;
  std::memcpy(&state, bytes.const_data_ptr(), sizeof(state));
  return state;
}

void GpuLbfgs::write_state(const LbfgsState& state) {
  const auto bytes = at::empty({sizeof(LbfgsState)}, torch::kUInt8);
  std::memcpy(bytes.mutable_data_ptr(), &state, sizeof(state));
  state_.copy_(bytes);
}

}  // namespace mpol::ops
