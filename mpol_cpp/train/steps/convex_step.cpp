#include <mpol_cpp/train/steps/convex_step.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/proximal/image_vectors.h>

namespace mpol {
namespace {

constexpr std::string_view of_channels = "_of_channels", problems_name = "problems";

/// Whether a tensor of a solver's state, or of losses, has numbers of each part.
bool is_of_parts(std::string_view name) {
  constexpr std::array<std::string_view, 5> names = {problems_name, "decreases", "regularizers", "passes_in_force",
                                                     detail::losses_name};
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_of_images(const Tensor& tensor) { return tensor.dim() >= 4; }

}  // namespace

ConvexObjective convex_function(const std::shared_ptr<ImageModel>& model, const Objective& objective,
                                const std::string& optimizer, Parts parts, CubeProximal::By by) {
  if (const auto why = ConvexObjective::obstacle(*model, objective); !why.empty()) {
    throw ValueError(fmt::format("{} needs a convex objective, but {}: use adam", optimizer, why));
  }
  return {model, objective, by, parts};
}

NamedTensors detail::cube_state(const ConvexObjective& function, const NamedTensors& state) {
  if (function.parts() == Parts::problems) return state;
  const auto nchan = function.channels();
  NamedTensors cubes;
  for (const auto& [name, tensor] : state) {
    if (is_of_parts(name)) {
      const auto parts_last = name == problems_name ? tensor.t() : tensor.view({-1, function.images().size(0)});
      cubes[name + std::string(of_channels)] = parts_last.unflatten(-1, {-1, nchan}).contiguous();
    } else if (is_of_images(tensor)) {
      cubes[name] = tensor.squeeze(-3).unflatten(-3, {-1, nchan});
    } else {
      cubes[name] = tensor;
    }
  }
  return cubes;
}

NamedTensors detail::part_state(const ConvexObjective& function, const NamedTensors& state) {
  if (function.parts() == Parts::problems) return state;
  NamedTensors parts;
  for (const auto& [name, tensor] : state) {
    if (name.ends_with(of_channels) && tensor.dim() > 1) {
      const auto own = name.substr(0, name.size() - of_channels.size());
      const auto parts_last = tensor.flatten(-2);
      parts[own] = own == problems_name ? parts_last.t().contiguous() : parts_last;
    } else if (is_of_images(tensor)) {
      parts[name] = tensor.flatten(-4, -3).unsqueeze(-3);
    } else {
      parts[name] = tensor;
    }
  }
  return parts;
}

ConvexStep::ConvexStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options,
                       Parts parts)
    : name_(to_string(options.optimizer())),
      function_(std::make_unique<ConvexObjective>(convex_function(model, objective, name_, parts))),
      tolerance_(options.wanted_tolerance().value()),
      ranks_(options.ranks()) {}

StepReport ConvexStep::take(double) {
  const torch::NoGradGuard no_grad;
  if (losses_.empty()) {
    prepare();
    losses_ = function_->losses();
  }
  const auto images = function_->images();
  auto before = function_->of_problems(at::tensor(losses_, torch::kFloat64).view({-1, images.size(0)}));
  const auto moved = iterate();
  const auto& next = function_->losses();
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    if (moved[i % moved.size()]) losses_[i] = next[i];
  }
  auto sum = images.is_cpu() ? at::scalar_tensor(ops::sum_of_pixels(images), torch::kFloat64)
                             : images.sum(torch::kFloat64).to(torch::kCPU);
  return {std::move(before), std::move(sum)};
}

void ConvexStep::set_stopped(const std::vector<bool>&) {
  throw ValueError(fmt::format("the problems of {} end together", name_));
}

void ConvexStep::hold_settled(const std::vector<bool>& still) {
  if (function_->parts() == Parts::problems || still.empty()) return;
  hold(tolerance_, function_->scales(losses_), still);
}

bool ConvexStep::has_converged() const {
  if (losses_.empty()) return false;
  if (function_->parts() == Parts::images) {  // each rank has its own
    std::vector<double> unsettled = {has_settled(tolerance_, function_->scales(losses_)) ? 0.0 : 1.0};
    if (ranks_) ranks_->sum(unsettled);
    return unsettled.front() == 0;
  }
  auto losses = losses_;
  if (ranks_) ranks_->sum(losses);
  return has_settled(tolerance_, function_->scales(losses));
}

std::optional<double> ConvexStep::gap() {
  const auto gaps = function_->gaps();
  if (gaps.empty()) return std::nullopt;
  std::vector<double> sum = {std::accumulate(gaps.begin(), gaps.end(), 0.0)};
  if (ranks_) ranks_->sum(sum);  // a bound of a sum is the sum of bounds
  return sum.front();
}

NamedTensors ConvexStep::state() const {
  auto state = solver_state();
  if (!losses_.empty()) state[detail::losses_name] = at::tensor(losses_, torch::kFloat64);
  state[detail::dual_name] = function_->map().dual();
  return detail::cube_state(*function_, state);
}

void ConvexStep::load_state(const NamedTensors& saved) {
  const auto state = detail::part_state(*function_, saved);
  const auto find = [&](const char* name) { return state.contains(name) ? state.at(name) : Tensor(); };
  const auto losses =
      find(detail::losses_name).defined() ? find(detail::losses_name).to(torch::kCPU, torch::kFloat64).contiguous() : Tensor();
  if (losses.defined() && losses.numel() % function_->images().size(0) != 0) {
    throw FileError(fmt::format("the saved state of {} has losses of shape {}", name_, losses.sizes().vec()));
  }
  if (!find(detail::dual_name).defined())
    throw FileError(fmt::format("the saved state is none of {}: it has no dual image", name_));
  load_solver_state(state);
  function_->map().set_dual(find(detail::dual_name));
  losses_.clear();
  if (losses.defined()) losses_.assign(losses.const_data_ptr<double>(), losses.const_data_ptr<double>() + losses.numel());
}

}  // namespace mpol
