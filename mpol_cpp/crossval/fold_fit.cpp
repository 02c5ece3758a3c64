#include <mpol_cpp/crossval/fold_fit.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <c10/util/accumulate.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/models/model_image.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/pogm.h>
#include <mpol_cpp/train/fit.h>
#include <mpol_cpp/train/steps/pogm_step.h>

namespace mpol::detail {
namespace {

bool all_are_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

FoldFit::FoldFit(std::shared_ptr<ImageModel> model, std::shared_ptr<Likelihood> likelihood, Normalize normalize,
                 TrainOptions options)
    : model_(std::move(model)), likelihood_(std::move(likelihood)), normalize_(normalize), options_(std::move(options)) {
  first_state_ = likelihood_->working_state();
  options_.callbacks({}).checkpoint({}).resume(false).on_divergence(OnDivergence::off);
}

std::vector<Tensor> FoldFit::parameters() const {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> copies;
  for (const auto& parameter : model_->as_module().parameters()) copies.push_back(parameter.detach().clone());
  return copies;
}

void FoldFit::set_parameters(const std::vector<Tensor>& values) {
  const torch::NoGradGuard no_grad;
  const auto parameters = model_->as_module().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(values[i]);
}

std::vector<FoldFit::End> FoldFit::fit_problems(const std::vector<Term>& terms) {
  likelihood_->load_working_state(first_state_);
  const Objective objective(likelihood_, terms, normalize_);
  if (is_proximal(options_.optimizer())) return fit_convex(objective);
  const auto result = Fit(model_, objective, options_).run();
  if (result.problem_epochs.empty()) {
    const auto problems = static_cast<std::size_t>(c10::multiply_integers(problem_shape(*model_)));
    return std::vector(problems, End{result.epochs, result.stop_reason});
  }
  std::vector<End> ends;
  for (const auto epochs : result.problem_epochs) ends.push_back({epochs, result.stop_reason});
  return ends;
}

std::vector<FoldFit::End> FoldFit::fit_convex(const Objective& objective) {
  const torch::NoGradGuard no_grad;
  if (const auto why = ConvexObjective::obstacle(*model_, objective); !why.empty())
    throw ValueError(fmt::format("{} needs a convex objective, but {}: use adam", to_string(options_.optimizer()), why));
  ConvexObjective function(model_, objective, CubeProximal::By::kernels, Parts::images);
  Pogm pogm(function, function.images(),
            {.curvatures = curvatures_, .most_passes = passes_to_settle, .momentum = momentum_of(options_.optimizer())});
  const auto problems = static_cast<std::size_t>(c10::multiply_integers(problem_shape(*model_)));
  const auto scales = [&] { return function.scales(); };
  const auto stop = [&] { return !all_are_finite(function.losses()) || (options_.interrupted() && options_.interrupted()()); };
  const auto settled = settle(pogm, options_.epochs(), options_.wanted_tolerance().value(), scales, stop);
  if (settled.end == Settled::told_to_stop) {
    const auto reason = all_are_finite(function.losses()) ? StopReason::interrupted : StopReason::diverged;
    return std::vector(problems, End{pogm.iterations(), reason});
  }
  curvatures_ = pogm.curvatures();
  std::vector<End> ends(problems, End{0, StopReason::converged});
  for (std::size_t part = 0; part < settled.iterations.size(); ++part) {
    auto& end = ends[part * problems / settled.iterations.size()];
    const bool has_settled = settled.iterations[part] >= 0;
    end.epochs = std::max(end.epochs, has_settled ? settled.iterations[part] : pogm.iterations());
    if (!has_settled) end.reason = StopReason::epochs;
  }
  return ends;
}

}  // namespace mpol::detail
