#include <mpol_cpp/train/steps/device_pogm_step.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/train/steps/convex_step.h>
#include <mpol_cpp/train/steps/engines/fused_objective.h>
#include <mpol_cpp/train/steps/pogm_step.h>

namespace mpol {
namespace {

constexpr int warm_ups = 1;

bool none_waits(const Objective& objective) {
  const auto& terms = objective.terms();
  return objective.likelihood().can_be_recorded() && std::none_of(terms.begin(), terms.end(), [](const Term& term) {
           return !term.is_off() && (term.kind() == TermKind::custom || regularizer_of(term.kind()).waits_for_device);
         });
}

/// On the CPU, where such a step is for tests, the map must take numbers of a device, too.
CubeProximal::By kernels_of(const ImageModel& model) {
  return model.base().is_cpu() ? CubeProximal::By::tensors : CubeProximal::By::kernels;
}

}  // namespace

DevicePogmStep::DevicePogmStep(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options)
    : name_(to_string(options.optimizer())),
      function_(convex_function(model, objective, name_, Parts::images, kernels_of(*model))),
      pogm_(function_, momentum_of(options.optimizer())),
      tolerance_(options.wanted_tolerance().value()),
      is_recordable_(none_waits(objective) && !function_.waits_for_device()) {
  places_.add("model.", model->as_module());
  places_.add("likelihood.", objective.likelihood().as_module());
}

StepReport DevicePogmStep::take(double) {
  const torch::NoGradGuard no_grad;
  places_.check();
  pogm_.prepare();
  iterate(pogm_.passes());
  const auto report = pogm_.keep_report();
  const auto values = report.numel() - 1;
  return {function_.of_problems(report.narrow(0, 0, values).view({-1, pogm_.images().size(0)})), report.select(0, values)};
}

void DevicePogmStep::iterate(std::int64_t passes) {
  if (!is_recordable_) return pogm_.iterate(passes);
  if (!recorded_ || passes_of_recorded_ != passes) {
    recorded_.reset();  // its memory goes first
    recorded_ = record(passes);
    passes_of_recorded_ = passes;
  }
  if (!recorded_) return pogm_.iterate(passes);
  recorded_->replay();
  pogm_.images().unsafeGetTensorImpl()->bump_version();
}

/// An iteration that warms up leaves no trace. @return null, and from now on nothing is recorded, where that is refused
std::unique_ptr<RecordedWork> DevicePogmStep::record(std::int64_t passes) {
  auto changed = pogm_.changed();
  const auto dual = function_.map().dual();
  std::vector<Tensor> before;
  const auto put_back = [&] {
    for (std::size_t i = 0; i < before.size(); ++i) changed[i].copy_(before[i]);
    function_.map().set_dual(dual);
  };
  try {
    for (const auto& tensor : changed) before.push_back(tensor.clone());
    auto work = std::make_unique<RecordedWork>(
        pogm_.images().device(), [this, passes] { pogm_.iterate(passes); }, warm_ups);
    put_back();
    return work;
  } catch (const DeviceError& error) {
    log_info(fmt::format("the iterations of {} are not recorded: {}", name_, error.what()));
  } catch (const c10::OutOfMemoryError&) {
    log_info(
        fmt::format("the iterations of {} are not recorded: {} has no memory for that", name_, pogm_.images().device().str()));
  }
  put_back();
  is_recordable_ = false;
  return nullptr;
}

std::int64_t DevicePogmStep::launches() const { return recorded_ ? recorded_->launches() : 0; }

void DevicePogmStep::set_stopped(const std::vector<bool>&) {
  throw ValueError(fmt::format("the problems of {} end together", name_));
}

void DevicePogmStep::hold_settled(const std::vector<bool>& still) {
  if (function_.parts() == Parts::images && !still.empty()) pogm_.hold_settled(tolerance_, still);
}

bool DevicePogmStep::has_converged() const { return pogm_.losses().defined() && pogm_.has_converged(tolerance_); }

std::optional<double> DevicePogmStep::gap() {
  const auto gaps = function_.gaps();
  if (gaps.empty()) return std::nullopt;
  return std::accumulate(gaps.begin(), gaps.end(), 0.0);
}

NamedTensors DevicePogmStep::state() const {
  auto state = pogm_.state();
  if (pogm_.losses().defined()) state[detail::losses_name] = pogm_.losses().flatten().clone();
  state[detail::dual_name] = function_.map().dual();
  return detail::cube_state(function_, state);
}

void DevicePogmStep::load_state(const NamedTensors& saved) {
  const torch::NoGradGuard no_grad;
  const auto state = detail::part_state(function_, saved);
  const auto losses = state.find(detail::losses_name), dual = state.find(detail::dual_name);
  if (losses != state.end() && losses->second.numel() % pogm_.images().size(0) != 0) {
    throw FileError(fmt::format("the saved state of {} has losses of shape {}", name_, losses->second.sizes().vec()));
  }
  if (dual == state.end()) throw FileError(fmt::format("the saved state is none of {}: it has no dual image", name_));
  pogm_.load_state(state, losses == state.end() ? Tensor() : losses->second.to(torch::kFloat64));
  function_.map().set_dual(dual->second);
}

}  // namespace mpol
