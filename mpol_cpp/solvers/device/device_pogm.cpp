#include <mpol_cpp/solvers/device/device_pogm.h>

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/proximal/dual_ascent.h>
#include <mpol_cpp/ops/proximal/gpu/pogm_launch.h>
#include <mpol_cpp/ops/proximal/pogm_end.h>
#include <mpol_cpp/core/octave_falls.h>

namespace mpol {
namespace {

constexpr std::int64_t first_room = 256;
constexpr const char* in_force_name = "passes_in_force";

ops::ImagePieces cut_of(const Tensor& images) {
  return {images.size(-2) * images.size(-1), static_cast<std::int32_t>(images.size(1)),
          static_cast<std::int32_t>(images.size(0))};
}

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
  ends_ = at::full({problems}, static_cast<std::int64_t>(ops::PogmEnd::began_anew), numbers.dtype(torch::kInt64));
  decreases_ = at::empty({first_room, problems}, numbers);
  w_ = y_.clone();
  z_ = y_.clone();
  for (auto* room : {&gradient_, &next_, &next_gradient_}) *room = at::empty_like(y_);
  next_t_ = at::empty_like(t_);
  next_c_ = at::empty_like(c_);
  pixel_sums_ = at::empty_like(t_);
  steps_ = at::empty_like(curvatures_);
  piece_sums_ = at::empty({ops::pogm_sums, cut_of(y_).blocks()}, numbers);
  sums_ = at::empty({ops::pogm_sums, problems, y_.size(1)}, numbers);
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

Tensor DevicePogm::fall(std::int64_t from, std::int64_t to) const { return decreases_.narrow(0, from, to - from).sum(0); }

Tensor DevicePogm::have_settled(double tolerance) const {
  return (ends_ == static_cast<std::int64_t>(ops::PogmEnd::held))
      .logical_or(fall(iterations_ / 2, iterations_) <= function_.device_scales(losses_) * tolerance);
}

Tensor DevicePogm::may_fall_far(double tolerance) const {
  const auto half = iterations_ / 2;
  const auto last = fall(half, iterations_), before = fall(iterations_ / 4, half);
  const auto allowed = function_.device_scales(losses_) * tolerance;
  return (last > negligible_fall * allowed).logical_and(last.square() > allowed * (before - last));
}

void DevicePogm::hold_settled(double tolerance, const std::vector<bool>& still) {
  const torch::NoGradGuard no_grad;
  if (iterations_ < PogmNumbers::fewest_iterations) return;
  const auto may_be = at::tensor(std::vector<std::int64_t>(still.begin(), still.end()), torch::kInt64).to(y_.device()) != 0;
  ends_.masked_fill_(have_settled(tolerance).logical_and(may_be).logical_and(may_fall_far(tolerance).logical_not()),
                     static_cast<std::int64_t>(ops::PogmEnd::held));
}

std::int64_t DevicePogm::passes() {
  const torch::NoGradGuard no_grad;
  const bool asks = iterations_ % between_looks == 0;
  if (asks) in_force_.copy_(passes_.masked_fill(ends_ == static_cast<std::int64_t>(ops::PogmEnd::held), 0));
  if (asks || most_in_force_ == not_asked) most_in_force_ = in_force_.max().item<std::int64_t>();
  return most_in_force_;
}

template <typename T>
ops::PogmArrays<T> DevicePogm::arrays(const ConvexObjective::DeviceValues& values) const {
  ops::PogmArrays<T> arrays{};
  arrays.cut = cut_of(y_);
  arrays.columns = losses_.numel() / y_.size(0);
  arrays.fista = momentum_ == Momentum::fista;
  arrays.mixes_images = mixes_images_;
  arrays.margin_of_curvature = PogmNumbers::margin_of_curvature;
  arrays.rounding_of_curvature = PogmNumbers::rounding_of_curvature;
  arrays.most_passes = PogmNumbers::most_passes;
  arrays.y = ops::device_array<T>(y_);
  arrays.w = ops::device_array<T>(w_);
  arrays.z = ops::device_array<T>(z_);
  arrays.gradient = ops::device_array<T>(gradient_);
  arrays.next = ops::device_array<const T>(next_);
  arrays.next_gradient = ops::device_array<const T>(next_gradient_);
  arrays.t = ops::device_array<double>(t_);
  arrays.c = ops::device_array<double>(c_);
  arrays.regularizers = ops::device_array<double>(regularizers_);
  arrays.curvatures = ops::device_array<double>(curvatures_);
  arrays.passes = ops::device_array<std::int64_t>(passes_);
  arrays.in_force = ops::device_array<const std::int64_t>(in_force_);
  arrays.ends = ops::device_array<std::int64_t>(ends_);
  arrays.next_t = ops::device_array<double>(next_t_);
  arrays.next_c = ops::device_array<double>(next_c_);
  arrays.steps = ops::device_array<double>(steps_);
  arrays.piece_sums = ops::device_array<double>(piece_sums_);
  arrays.sums = ops::device_array<double>(sums_);
  arrays.next_regularizers = ops::device_array<const double>(values.simple);
  arrays.next_losses = ops::device_array<const double>(values.losses);
  arrays.losses = ops::device_array<double>(losses_);
  arrays.report = ops::device_array<double>(report_);
  arrays.pixel_sums = ops::device_array<double>(pixel_sums_);
  return arrays;
}

void DevicePogm::run(std::initializer_list<ops::PogmKernel> kernels, const ConvexObjective::DeviceValues& values) const {
  const c10::DeviceGuard guard(y_.device());
  const auto run_all = [&](const auto& arrays) {
    for (const auto kernel : kernels) ops::run_kernel(kernel, arrays, y_.device(), ops::EmulatedOrder::ascending);
  };
  if (y_.scalar_type() == torch::kFloat64) run_all(arrays<double>(values));
  else run_all(arrays<float>(values));
}

void DevicePogm::iterate(std::int64_t passes) {
  const torch::NoGradGuard no_grad;
  using Kernel = ops::PogmKernel;
  run({Kernel::advance}, {});
  function_.map().apply(z_, steps_, ops::DevicePasses{in_force_, passes}, next_);
  auto values = function_.evaluate_on_device(next_, next_gradient_);
  values = {values.simple.contiguous(), values.losses.contiguous()};
  run({Kernel::compare, Kernel::sum_up, Kernel::judge, Kernel::choose}, values);
}

Tensor DevicePogm::keep_report() {
  const auto own = report_.numel() - y_.size(0);
  if (iterations_ == decreases_.size(0)) decreases_ = at::cat({decreases_, at::empty_like(decreases_)});
  decreases_.select(0, iterations_++).copy_(report_.narrow(0, own, y_.size(0)));
  return report_.narrow(0, 0, own).clone();
}

bool DevicePogm::has_converged(double tolerance) const {
  const torch::NoGradGuard no_grad;
  return iterations_ >= PogmNumbers::fewest_iterations && have_settled(tolerance).all().item<bool>();
}

std::vector<Tensor> DevicePogm::changed() const {
  return {y_, w_, z_, gradient_, t_, c_, regularizers_, curvatures_, passes_, ends_, losses_};
}

NamedTensors DevicePogm::state() const {
  const auto numbers = at::stack({t_, c_, passes_.to(torch::kFloat64), ends_.to(torch::kFloat64)}, 1);
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
  ends_.copy_(read.problems.select(1, 3));
  in_force_.copy_(found != state.end() ? found->second.flatten() : read.problems.select(1, 2));
  most_in_force_ = not_asked;
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
