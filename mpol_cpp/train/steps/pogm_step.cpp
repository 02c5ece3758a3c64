#include <mpol_cpp/train/steps/pogm_step.h>

#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr const char* losses_name = "losses";
constexpr const char* dual_name = "tv_dual";

std::unique_ptr<ConvexObjective> convex(const std::shared_ptr<ImageModel>& model, const Objective& objective) {
  if (const auto why = ConvexObjective::obstacle(*model, objective); !why.empty()) {
    throw ValueError(fmt::format("pogm needs a convex objective, but {}: use adam", why));
  }
  return std::make_unique<ConvexObjective>(std::dynamic_pointer_cast<GriddedNetImpl>(model), objective);
}

}  // namespace

PogmStep::PogmStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options)
    : function_(convex(model, objective)), pogm_(*function_, function_->images()), tolerance_(options.tolerance()) {}

StepReport PogmStep::take(double) {
  const torch::NoGradGuard no_grad;
  if (!losses_.defined()) {
    pogm_.prepare();
    losses_ = function_->losses();
  }
  auto before = losses_;
  const auto moved = pogm_.iterate();
  const auto taken = at::tensor(std::vector<double>(moved.begin(), moved.end())).to(losses_.device()) > 0;
  losses_ = at::where(taken, function_->losses(), losses_);
  return {std::move(before), pogm_.images().sum(torch::kFloat64)};
}

void PogmStep::set_stopped(const std::vector<bool>&) { throw ValueError("the problems of pogm end together"); }

bool PogmStep::has_converged() const {
  return losses_.defined() && pogm_.has_converged(tolerance_, ConvexObjective::scales(losses_));
}

NamedTensors PogmStep::state() const {
  auto state = pogm_.state();
  if (losses_.defined()) state[losses_name] = losses_.clone();
  state[dual_name] = function_->total_variation().dual();
  return state;
}

void PogmStep::load_state(const NamedTensors& state) {
  const auto find = [&](const char* name) { return state.contains(name) ? state.at(name) : Tensor(); };
  const auto images = function_->images();
  auto losses = find(losses_name);
  if (losses.defined() && (losses.dim() != 2 || losses.size(1) != images.size(0))) {
    throw FileError(fmt::format("the saved state of pogm has losses of shape {}", losses.sizes().vec()));
  }
  pogm_.load_state(state);
  function_->total_variation().set_dual(find(dual_name));
  losses_ = losses.defined() ? losses.to(images.device()).clone() : Tensor();
}

}  // namespace mpol
