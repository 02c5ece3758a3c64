#include <mpol_cpp/crossval/fold_batch.h>

#include <utility>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/batched_likelihood.h>

namespace mpol::detail {
namespace {

std::vector<FoldFit*> allowed(std::vector<FoldFit*> folds, const TrainOptions& options) {
  if (const auto why = FoldBatch::obstacle(folds, options); !why.empty())
    throw ValueError(fmt::format("these folds cannot be fitted as one batch: {}; fit them one at a time", why));
  return folds;
}

std::shared_ptr<ImageModel> model_of(const std::vector<FoldFit*>& folds) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> bases;
  for (const auto* fold : folds) bases.push_back(fold->model().base().detach());
  const auto* first = folds.front()->model().gridded_net();
  auto options = first->options();
  auto model = std::make_shared<GriddedNetImpl>(options.base_cube(at::stack(bases)), first->smoothing());
  model->to(bases.front().device());
  return model;
}

std::shared_ptr<Likelihood> likelihood_of(const std::vector<FoldFit*>& folds) {
  std::vector<std::shared_ptr<Likelihood>> likelihoods;
  for (const auto* fold : folds) likelihoods.push_back(fold->shared_likelihood());
  return BatchedLikelihood(std::move(likelihoods)).ptr();
}

/// A fold alone stops by its own total, and so does each of a batch.
TrainOptions options_of_each(TrainOptions options) { return options.stop_scope(StopScope::each); }

}  // namespace

std::string FoldBatch::obstacle(const std::vector<FoldFit*>& folds, const TrainOptions& options) {
  const auto kind = options.optimizer();
  if (kind == OptimizerKind::lbfgs) return "problems share the search of lbfgs";
  if (!options.is_plain_update()) return "the update is LibTorch's, which knows no problems";
  if (!is_proximal(kind) && options.wanted_tolerance()) {
    return fmt::format("{} looks at all problems together to tell whether it has converged", to_string(kind));
  }
  if (!options.rate_factors().empty()) return "their fits have rate_factors of their own";
  const auto* first = folds.front()->model().gridded_net();
  for (const auto* fold : folds) {
    const auto* net = fold->model().gridded_net();
    if (net == nullptr) return "the model is not GriddedNet";
    const auto base = net->base(), base_of_first = first->base();
    if (base.sizes() != base_of_first.sizes() || base.options().device() != base_of_first.options().device() ||
        base.scalar_type() != base_of_first.scalar_type() || net->smoothing() != first->smoothing() ||
        net->options().pixel_mapping().name != first->options().pixel_mapping().name) {
      return "their models are not alike, or not on one device";
    }
    if (base.dim() != 3) return "their models have several problems";
  }
  return {};
}

FoldBatch::FoldBatch(std::vector<FoldFit*> folds, Normalize normalize, const TrainOptions& options)
    : folds_(allowed(std::move(folds), options)),
      all_(model_of(folds_), likelihood_of(folds_), normalize, options_of_each(options)) {}

Tensor FoldBatch::base_of(std::size_t problem) const { return all_.model().base().detach()[static_cast<std::int64_t>(problem)]; }

std::vector<FoldFit::End> FoldBatch::fit(const std::vector<Term>& terms) {
  const torch::NoGradGuard no_grad;
  std::vector<double> curvatures;
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    base_of(k).copy_(folds_[k]->model().base());
    const auto& own = folds_[k]->curvatures();
    curvatures.insert(curvatures.end(), own.begin(), own.end());
  }
  all_.set_curvatures(curvatures);
  auto ends = [&] {
    const torch::AutoGradMode with_gradients(true);
    return all_.fit_problems(terms);
  }();
  const auto nchan = static_cast<std::ptrdiff_t>(all_.curvatures().size() / folds_.size());
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    folds_[k]->set_parameters({base_of(k)});
    const auto begin = all_.curvatures().begin() + static_cast<std::ptrdiff_t>(k) * nchan;
    folds_[k]->set_curvatures({begin, begin + nchan});
  }
  return ends;
}

}  // namespace mpol::detail
