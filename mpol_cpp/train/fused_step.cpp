#include <mpol_cpp/train/fused_step.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <typeinfo>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/optimizer.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/losses/fourier_regularizers.h>
#include <mpol_cpp/losses/gridded_likelihood.h>
#include <mpol_cpp/losses/regularizers.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/ops/fused_pipeline.h>
#include <mpol_cpp/train/optimizer_state.h>

namespace mpol {
namespace {

constexpr const char* parameter_name = "model.bcube.base_cube";

bool is_fused(TermKind kind) {
  switch (kind) {
    case TermKind::sparsity:
    case TermKind::tv_image:
    case TermKind::tsv:
    case TermKind::entropy:
    case TermKind::tv_channel:
    case TermKind::edge_clamp:
    case TermKind::psd:
      return true;
    default:
      return false;
  }
}

std::string obstacle_of_terms(const std::vector<Term>& terms) {
  std::set<TermKind> kinds;
  for (const auto& term : terms) {
    if (!is_fused(term.kind())) return fmt::format("term {} is not one of the regularisers of the fused step", term.name());
    if (!kinds.insert(term.kind()).second) return fmt::format("term {} is a second one of its kind", term.name());
  }
  return {};
}

bool is_softplus(const PixelMapping& mapping) {
  const torch::NoGradGuard no_grad;
  const auto probe = torch::tensor({-40.0, -3.0, 0.05, 1.5, 30.0}, torch::kFloat64);
  return at::equal(mapping.forward(probe), softplus_mapping().forward(probe));
}

/// The likelihood whose cells the passes know; null for another one, a derived one too, which is given images.
const GriddedLikelihoodImpl* gridded(const Likelihood& likelihood) {
  return typeid(likelihood) == typeid(GriddedLikelihoodImpl) ? dynamic_cast<const GriddedLikelihoodImpl*>(&likelihood) : nullptr;
}

std::string obstacle_of_likelihood(Likelihood& likelihood) {
  for (const auto& parameter : likelihood.as_module().named_parameters()) {
    if (!parameter.value().defined() || !parameter.value().requires_grad()) continue;
    return fmt::format("the {} likelihood trains a parameter of its own, {}", likelihood.name(), parameter.key());
  }
  return {};
}

std::string obstacle_of_data(const ImageModel& model, const GriddedLikelihoodImpl& likelihood) {
  const auto base = model.base();
  if (!(likelihood.coords() == model.coords()) || base.size(-3) != likelihood.nchan()) {
    return "the model's grid or channels are not those of the likelihood";
  }
  const auto dtype = likelihood.named_buffers()["weights"].scalar_type();
  if (dtype == base.scalar_type()) return {};
  return fmt::format("the base pixels are {} but the data are {}", c10::toString(base.scalar_type()), c10::toString(dtype));
}

std::string obstacle_of_model(ImageModel& model) {
  const auto* net = dynamic_cast<const GriddedNetImpl*>(&model);
  // A class derived from one of ours may do something else.
  if (net == nullptr || typeid(model) != typeid(GriddedNetImpl)) return "the model is not GriddedNet";
  if (net->options().pixel_mapping().name != "softplus") {
    return fmt::format("the pixel mapping is {}, not softplus", net->options().pixel_mapping().name);
  }
  if (!is_softplus(net->options().pixel_mapping())) return "the pixel mapping calls itself softplus, but is another function";
  const auto base = net->base();
  if (!base.device().is_cpu()) return fmt::format("the model is on {}; the fused step is for the CPU", base.device().str());
  if (base.scalar_type() != torch::kFloat32 && base.scalar_type() != torch::kFloat64) {
    return fmt::format("the base pixels are {}, neither float32 nor float64", c10::toString(base.scalar_type()));
  }
  if (!base.requires_grad()) return "the base pixels are not trained";
  if (!base.is_contiguous() || base.numel() == 0) return "the base pixels are not contiguous";
  return {};
}

ops::FusedTerms fused_terms(const std::vector<Term>& terms) {
  ops::FusedTerms fused;
  fused.entropy_floor = losses::entropy_gradient_floor;
  for (const auto& term : terms) {
    const auto& settings = term.settings();
    switch (term.kind()) {
      case TermKind::sparsity:
        fused.sparsity = term.weight();
        break;
      case TermKind::tsv:
        fused.tsv = term.weight();
        break;
      case TermKind::edge_clamp:
        fused.edge_clamp = term.weight();
        break;
      case TermKind::psd:
        fused.psd = term.weight();
        break;
      case TermKind::tv_image:
        fused.tv_image = term.weight();
        fused.tv_image_epsilon = settings.at(0);
        break;
      case TermKind::tv_channel:
        fused.tv_channel = term.weight();
        fused.tv_channel_epsilon = settings.at(0);
        break;
      case TermKind::entropy:
        fused.entropy = term.weight();
        fused.prior_intensity = settings.at(0);
        fused.total_flux = settings.at(1);
        break;
      default:
        throw ValueError(fmt::format("term {} is not one of the regularisers of the fused step", term.name()));
    }
  }
  return fused;
}

/// 1/P on the half plane; it is the same at -kv.
Tensor half_plane_inverse_power(const std::vector<Term>& terms, const GridCoords& coords) {
  const auto psd = std::find_if(terms.begin(), terms.end(), [](const Term& term) { return term.kind() == TermKind::psd; });
  return losses::inverse_expected_power(coords, psd->settings().at(0)).narrow(-1, 0, coords.npix() / 2 + 1);
}

double value_of(TermKind kind, const ops::FusedValues& values) {
  switch (kind) {
    case TermKind::sparsity:
      return values.sparsity;
    case TermKind::tv_image:
      return values.tv_image;
    case TermKind::tsv:
      return values.tsv;
    case TermKind::entropy:
      return values.entropy;
    case TermKind::tv_channel:
      return values.tv_channel;
    case TermKind::edge_clamp:
      return values.edge_clamp;
    case TermKind::psd:
      return values.psd;
    default:
      throw ValueError("not one of the regularisers of the fused step");
  }
}

/// The saved tensor, which is taken out. @throws FileError when it is not there
Tensor extract(NamedTensors& saved, const std::string& name) {
  auto node = saved.extract(name);
  if (node.empty()) throw FileError(fmt::format("the optimiser's state has no {}", name));
  return node.mapped();
}

}  // namespace

/// The base pixels, the optimiser's moments and the passes over them.
class FusedStep::Optimizer {
 public:
  Optimizer(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options)
      : model_(std::move(model)),
        terms_(objective.terms()),
        likelihood_scale_(1.0 / (2.0 * objective.normaliser())),
        kind_(options.optimizer()),
        momentum_(options.momentum()),
        dtype_(base().scalar_type()) {
    ops::FusedSettings settings;
    settings.npix = base().size(-1);
    settings.nchan = base().size(-3);
    settings.problems = base().numel() / (settings.npix * settings.npix * settings.nchan);
    settings.cell_area = model_->coords().cell_area();
    settings.likelihood_scale = likelihood_scale_;
    settings.terms = fused_terms(terms_);
    if (settings.terms.psd > 0) settings.inverse_power = half_plane_inverse_power(terms_, model_->coords());
    if (dtype_ == torch::kFloat32) single_ = pipeline<float>(settings, objective);
    else double_ = pipeline<double>(settings, objective);
    if (kind_ == OptimizerKind::lbfgs) lbfgs_ = detail::make_optimizer(options, {base()});
    reset();
  }

  StepReport take(double learning_rate) {
    const torch::NoGradGuard no_grad;
    if (lbfgs_) return search(learning_rate);
    check_base();
    ++steps_;
    const auto& values = single_ ? run(*single_, learning_rate) : run(*double_, learning_rate);
    base().unsafeGetTensorImpl()->bump_version();
    return report(values);
  }

  NamedTensors state() const {
    if (lbfgs_) return detail::optimizer_state(kind_, *lbfgs_, {{parameter_name, base()}});
    NamedTensors saved;
    if (steps_ == 0) return saved;
    const std::string name = parameter_name;
    if (kind_ == OptimizerKind::adam) {
      saved[name + ".step"] = at::scalar_tensor(steps_, torch::kInt64);
      saved[name + ".exp_avg"] = first_.clone();
      saved[name + ".exp_avg_sq"] = second_.clone();
    } else if (first_.defined()) {
      saved[name + ".momentum_buffer"] = first_.clone();
    }
    return saved;
  }

  void load_state(NamedTensors saved) {
    if (lbfgs_) return detail::load_optimizer_state(kind_, *lbfgs_, {{parameter_name, base()}}, saved);
    const torch::NoGradGuard no_grad;
    reset();
    if (saved.empty()) return;
    const std::string name = parameter_name;
    if (kind_ == OptimizerKind::adam) {
      copy(first_, saved, name + ".exp_avg");
      copy(second_, saved, name + ".exp_avg_sq");
      steps_ = extract(saved, name + ".step").item<std::int64_t>();
    } else {
      if (first_.defined()) copy(first_, saved, name + ".momentum_buffer");
      steps_ = 1;
    }
    if (!saved.empty()) throw FileError(fmt::format("the optimiser's state has an unknown {}", saved.begin()->first));
  }

 private:
  template <typename T>
  static std::unique_ptr<ops::FusedPipeline<T>> pipeline(const ops::FusedSettings& settings, const Objective& objective) {
    if (gridded(objective.likelihood()) == nullptr) {
      return std::make_unique<ops::FusedPipeline<T>>(
          settings, [held = objective.shared_likelihood()](const Tensor& images, Tensor& gradient) {
            return held->value_and_gradient(images, gradient, Accumulate::overwrite);
          });
    }
    const auto buffers = objective.likelihood().as_module().named_buffers();
    return std::make_unique<ops::FusedPipeline<T>>(
        settings, ops::column_cells<T>(buffers["cells"], buffers["data"], buffers["weights"], settings.nchan, settings.npix));
  }

  Tensor base() const { return model_->base(); }

  void reset() {
    steps_ = 0;
    const auto zeros = [&] { return at::zeros_like(base().detach(), at::MemoryFormat::Contiguous); };
    if (kind_ == OptimizerKind::adam) second_ = zeros();
    if (kind_ == OptimizerKind::adam || momentum_ != 0) first_ = zeros();
  }

  /// One step of L-BFGS, which evaluates value and gradient several times along its direction.
  StepReport search(double learning_rate) {
    lbfgs_->param_groups().front().options().set_lr(learning_rate);
    StepReport first;
    lbfgs_->step([&] {
      const torch::NoGradGuard no_autograd;
      check_base();
      const auto& values = single_ ? gradient(*single_) : gradient(*double_);
      const auto evaluated = report(values);
      if (!first.losses.defined()) first = evaluated;
      return evaluated.losses.select(0, 0).sum();
    });
    first.parameters_sum = base().sum(torch::kFloat64);
    return first;
  }

  template <typename T>
  const std::vector<ops::FusedValues>& gradient(ops::FusedPipeline<T>& pipeline) {
    auto& gradient = base().mutable_grad();
    if (!gradient.defined()) gradient = at::empty_like(base());
    return pipeline.run(ops::FusedUpdate::none,
                        {base().mutable_data_ptr<T>(), nullptr, nullptr, gradient.template mutable_data_ptr<T>()}, {});
  }

  void check_base() const {
    if (base().scalar_type() != dtype_ || !base().device().is_cpu() || !base().is_contiguous()) {
      throw ValueError("the model was moved or cast after its step was made: make a new one");
    }
  }

  static void copy(Tensor& to, NamedTensors& saved, const std::string& name) {
    const auto from = extract(saved, name);
    if (from.sizes() != to.sizes()) {
      throw FileError(fmt::format("the optimiser's state {} has shape {}, its parameter has shape {}", name, from.sizes().vec(),
                                  to.sizes().vec()));
    }
    to.copy_(from);
  }

  template <typename T>
  const std::vector<ops::FusedValues>& run(ops::FusedPipeline<T>& pipeline, double learning_rate) {
    const auto data = [](const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr; };
    const ops::UpdateRow<T> pixels{base().mutable_data_ptr<T>(), data(first_), data(second_), nullptr};
    ops::UpdateSettings update;
    update.rate = learning_rate;
    update.momentum = momentum_;
    if (kind_ == OptimizerKind::sgd) return pipeline.run(ops::FusedUpdate::sgd, pixels, update);
    const auto steps = static_cast<double>(steps_);
    update.rate = learning_rate / (1.0 - std::pow(update.beta1, steps));
    update.second_scale = 1.0 / std::sqrt(1.0 - std::pow(update.beta2, steps));
    return pipeline.run(ops::FusedUpdate::adam, pixels, update);
  }

  StepReport report(const std::vector<ops::FusedValues>& values) const {
    const auto problems = static_cast<std::int64_t>(values.size()), columns = static_cast<std::int64_t>(terms_.size()) + 2;
    auto losses = at::empty({columns, problems}, torch::kFloat64);
    auto table = losses.accessor<double, 2>();
    double parameters = 0;
    for (std::int64_t problem = 0; problem < problems; ++problem) {
      const auto& own = values[static_cast<std::size_t>(problem)];
      const double nll = own.chi_squared * likelihood_scale_;
      double total = nll;
      for (std::int64_t i = 2; i < columns; ++i) {
        const auto& term = terms_[static_cast<std::size_t>(i - 2)];
        const double value = term.weight() == 0 ? 0.0 : term.weight() * value_of(term.kind(), own);
        table[i][problem] = value;
        total += value;
      }
      table[0][problem] = total;
      table[1][problem] = nll;
      parameters += own.parameters;
    }
    return {losses, at::scalar_tensor(parameters, torch::kFloat64)};
  }

  std::shared_ptr<ImageModel> model_;
  std::vector<Term> terms_;
  double likelihood_scale_;
  OptimizerKind kind_;
  double momentum_;
  torch::Dtype dtype_;
  std::unique_ptr<ops::FusedPipeline<float>> single_;  // one of the two
  std::unique_ptr<ops::FusedPipeline<double>> double_;
  std::int64_t steps_ = 0;
  Tensor first_, second_;
  std::unique_ptr<torch::optim::Optimizer> lbfgs_;  // null for the others, which the pipeline itself does
};

std::string FusedStep::obstacle(ImageModel& model, const Objective& objective, const TrainOptions&) {
  if (auto reason = obstacle_of_likelihood(objective.likelihood()); !reason.empty()) return reason;
  if (auto reason = obstacle_of_model(model); !reason.empty()) return reason;
  if (const auto* likelihood = gridded(objective.likelihood()); likelihood != nullptr) {
    if (auto reason = obstacle_of_data(model, *likelihood); !reason.empty()) return reason;
  }
  return obstacle_of_terms(objective.terms());
}

FusedStep::FusedStep(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options,
                     std::string reason)
    : reason_(std::move(reason)) {
  if (const auto why = obstacle(*model, objective, options); !why.empty()) {
    throw ValueError(fmt::format("the fused step does not apply: {}; use auto or eager", why));
  }
  optimizer_ = std::make_unique<Optimizer>(std::move(model), objective, options);
}

FusedStep::~FusedStep() = default;

StepReport FusedStep::take(double learning_rate) { return optimizer_->take(learning_rate); }

NamedTensors FusedStep::state() const { return optimizer_->state(); }

void FusedStep::load_state(const NamedTensors& state) { optimizer_->load_state(state); }

}  // namespace mpol
