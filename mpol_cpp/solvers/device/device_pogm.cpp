#include <mpol_cpp/solvers/device/device_pogm.h>

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/proximal/dual_ascent.h>

namespace mpol {
namespace {

constexpr std::int64_t first_room = 256;
constexpr const char* in_force_name = "passes_in_force";

/// One number for each image or problem, to multiply images with.
Tensor on_images(const Tensor& numbers, const Tensor& images) {
  return numbers.to(images.scalar_type()).view({images.size(0), -1, 1, 1});
}

Tensor sums_of_images(const Tensor& images) { return images.sum({-2, -1}, /*keepdim=*/false, torch::kFloat64); }

}  // namespace

DevicePogm::DevicePogm(ConvexObjective& function, Momentum momentum)
    : function_(function), momentum_(momentum), mixes_images_(function.mixes_images()), y_(function.images()) {
  const torch::NoGradGuard no_grad;
  const auto problems = y_.size(0);
  const auto numbers = torch::TensorOptions(torch::kFloat64).device(y_.device());
  t_ = at::ones({problems}, numbers);
  c_ = at::ones({problems}, numbers);
  regularizers_ = at::zeros({problems}, numbers);
  curvatures_ = at::tensor(function_.curvatures(), torch::kFloat64).to(y_.device()).view({problems, -1});
  passes_ = at::full({problems}, PogmNumbers::first_passes, numbers.dtype(torch::kInt64));
  in_force_ = passes_.clone();
  begun_anew_ = at::ones({problems}, numbers.dtype(torch::kBool));
  decreases_ = at::empty({first_room, problems}, numbers);
  w_ = y_.clone();
  z_ = y_.clone();
  for (auto* room : {&gradient_, &next_, &next_gradient_}) *room = at::empty_like(y_);
}

void DevicePogm::prepare() {
  if (is_prepared_) return;
  const torch::NoGradGuard no_grad;
  const auto values = function_.evaluate_on_device(y_, gradient_);
  regularizers_.copy_(values.simple);
  set_losses(values.losses);
  is_prepared_ = true;
}

void DevicePogm::set_losses(const Tensor& losses) {
  if (losses_.defined()) {
    losses_.copy_(losses);
    return;
  }
  losses_ = losses.clone();
  report_ = at::empty({losses_.numel() + 1 + y_.size(0)}, losses_.options());
}

std::int64_t DevicePogm::passes() {
  const bool asks = iterations_ % between_looks == 0;
  if (asks) in_force_.copy_(passes_);
  if (asks || most_in_force_ == 0) most_in_force_ = in_force_.max().item<std::int64_t>();
  return most_in_force_;
}

DevicePogm::Trial DevicePogm::try_next(std::int64_t passes) {
  const bool fista = momentum_ == Momentum::fista;
  Trial trial;
  trial.t = (1 + (1 + 4 * t_.square()).sqrt()) / 2;
  trial.c = fista ? t_ : (2 * t_ + trial.t - 1) / trial.t;
  const auto step = 1 / curvatures_;
  const auto down = y_ - gradient_ * on_images(step, y_);
  if (fista) {
    z_.copy_(down + (down - w_) * on_images((c_ - 1) / t_, y_));
  } else {
    z_.copy_(down + (down - w_) * on_images((t_ - 1) / trial.t, y_) + (down - y_) * on_images(t_ / trial.t, y_) +
             (z_ - y_) * on_images((t_ - 1) / (c_ * trial.t), y_));
  }
  w_.copy_(down);
  const auto steps = fista ? step : trial.c.unsqueeze(1) * step;
  function_.map().apply(z_, steps, ops::DevicePasses{in_force_, passes}, next_);
  const auto values = function_.evaluate_on_device(next_, next_gradient_);
  trial.simple = values.simple;
  trial.losses = values.losses;
  const auto change = next_ - y_;
  trial.along = sums_of_images(change * (next_gradient_ + gradient_));
  trial.bends = sums_of_images(change * (next_gradient_ - gradient_));
  trial.lengths = sums_of_images(change * change);
  return trial;
}

Tensor DevicePogm::raise_curvatures(const Trial& trial) {
  const auto allowed = curvatures_ * trial.lengths;
  if (!mixes_images_) {
    const auto more = trial.bends > allowed * PogmNumbers::rounding_of_curvature;
    curvatures_.copy_(at::where(more, PogmNumbers::margin_of_curvature * trial.bends / trial.lengths, curvatures_));
    return more.any(1);
  }
  const auto bends = trial.bends.sum(1, /*keepdim=*/true), allowed_together = allowed.sum(1, /*keepdim=*/true);
  const auto more = bends > allowed_together * PogmNumbers::rounding_of_curvature;
  curvatures_.copy_(at::where(more, curvatures_ * (PogmNumbers::margin_of_curvature * bends / allowed_together), curvatures_));
  return more.squeeze(1);
}

void DevicePogm::choose(const Trial& trial, const Tensor& too_long) {
  const auto rise = trial.simple - regularizers_ + trial.along.sum(1) / 2;
  const auto again = too_long.logical_or((rise > 0).logical_and(begun_anew_.logical_not()));
  const auto wants_more = again.logical_and(too_long.logical_not()).logical_and(passes_ == in_force_);
  passes_.copy_(at::where(wants_more, (2 * passes_).clamp_max(PogmNumbers::most_passes), passes_));
  const auto columns = losses_.numel(), problems = y_.size(0);
  report_.narrow(0, 0, columns).copy_(losses_.flatten());
  report_.narrow(0, columns + 1, problems).copy_(at::where(again, 0.0, -rise));
  regularizers_.copy_(at::where(again, regularizers_, trial.simple));
  losses_.copy_(at::where(again, losses_, trial.losses));
  c_.copy_(at::where(again, 1.0, trial.c));  // before t, which FISTA's c is
  t_.copy_(at::where(again, 1.0, trial.t));
  begun_anew_.copy_(again);
  const auto stays = again.view({problems, 1, 1, 1});
  w_.copy_(at::where(stays, y_, w_));
  z_.copy_(at::where(stays, y_, z_));
  y_.copy_(at::where(stays, y_, next_));
  gradient_.copy_(at::where(stays, gradient_, next_gradient_));
  report_.narrow(0, columns, 1).copy_(y_.sum(torch::kFloat64).view({1}));
}

void DevicePogm::iterate(std::int64_t passes) {
  const torch::NoGradGuard no_grad;
  const auto trial = try_next(passes);
  choose(trial, raise_curvatures(trial));
}

Tensor DevicePogm::keep_report() {
  const auto own = report_.numel() - y_.size(0);
  if (iterations_ == decreases_.size(0)) decreases_ = at::cat({decreases_, at::empty_like(decreases_)});
  decreases_.select(0, iterations_++).copy_(report_.narrow(0, own, y_.size(0)));
  return report_.narrow(0, 0, own).clone();
}

bool DevicePogm::has_converged(double tolerance, const std::vector<double>& losses) const {
  if (iterations_ < PogmNumbers::fewest_iterations) return false;
  const auto half = iterations_ / 2;
  const auto fallen = decreases_.narrow(0, half, iterations_ - half).sum(0).to(torch::kCPU);
  const auto scales = ConvexObjective::scales(losses, static_cast<std::size_t>(y_.size(0)));
  const auto* own = fallen.const_data_ptr<double>();
  return std::all_of(scales.begin(), scales.end(), [&](double scale) { return *own++ <= tolerance * scale; });
}

std::vector<Tensor> DevicePogm::changed() const {
  return {y_, w_, z_, gradient_, t_, c_, regularizers_, curvatures_, passes_, begun_anew_, losses_};
}

NamedTensors DevicePogm::state() const {
  const auto numbers = at::stack({t_, c_, passes_.to(torch::kFloat64), begun_anew_.to(torch::kFloat64)}, 1);
  PogmState state{
      numbers, curvatures_.flatten().clone(), decreases_.narrow(0, 0, iterations_).clone(), w_.clone(), z_.clone(), {}, {}};
  if (is_prepared_) {
    state.gradient = gradient_.clone();
    state.regularizers = regularizers_.clone();
  }
  auto named = state.named(momentum_);
  named[in_force_name] = in_force_.to(torch::kFloat64);
  return named;
}

void DevicePogm::load_state(const NamedTensors& state, const Tensor& losses) {
  const auto read = PogmState::read(state, y_, momentum_);
  const auto found = state.find(in_force_name);
  if (found != state.end() && found->second.numel() != y_.size(0)) {
    throw FileError(
        fmt::format("the saved state of pogm has {} numbers of passes for {} problems", found->second.numel(), y_.size(0)));
  }
  t_.copy_(read.problems.select(1, 0));
  c_.copy_(read.problems.select(1, 1));
  passes_.copy_(read.problems.select(1, 2));
  begun_anew_.copy_(read.problems.select(1, 3) != 0);
  in_force_.copy_(found != state.end() ? found->second.flatten() : read.problems.select(1, 2));
  most_in_force_ = 0;
  curvatures_.copy_(read.curvatures.view_as(curvatures_));
  iterations_ = read.decreases.size(0);
  decreases_ = at::empty({std::max(first_room, 2 * iterations_), y_.size(0)}, t_.options());
  decreases_.narrow(0, 0, iterations_).copy_(read.decreases);
  w_.copy_(read.w);
  z_.copy_(read.z);
  is_prepared_ = read.regularizers.defined() && losses.defined();
  if (!is_prepared_) return;
  gradient_.copy_(read.gradient);
  regularizers_.copy_(read.regularizers);
  set_losses(losses.to(t_.device()).view({-1, y_.size(0)}));
}

}  // namespace mpol
