#include <mpol_cpp/train/steps/fused_objective.h>

#include <algorithm>
#include <limits>
#include <set>
#include <typeinfo>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/regularizers/fourier_regularizers.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/regularizers/regularizers.h>
#include <mpol_cpp/models/gridded_net.h>

namespace mpol::detail {
namespace {

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

/// Of total variations the kernels take the reciprocal root of epsilon. The eager step refuses what is too small.
bool is_below_normal_numbers(const Term& term, torch::Dtype dtype) {
  const bool has_epsilon = term.kind() == TermKind::tv_image || term.kind() == TermKind::tv_channel;
  return has_epsilon && dtype == torch::kFloat32 && term.settings().at(0) < std::numeric_limits<float>::min();
}

std::string obstacle_of_terms(const std::vector<Term>& terms, std::int64_t problems, torch::Dtype dtype) {
  std::set<TermKind> kinds;
  for (const auto& term : terms) {
    if (!is_fused(term.kind())) return fmt::format("term {} is not one of the regularisers of the fused step", term.name());
    if (term.weights().size() > 1 && static_cast<std::int64_t>(term.weights().size()) != problems) {
      return fmt::format("term {} has weights for {} problems, the model {}", term.name(), term.weights().size(), problems);
    }
    if (is_below_normal_numbers(term, dtype)) {
      return fmt::format("term {} has epsilon {:.3g}, below the normal numbers of float32", term.name(), term.settings().at(0));
    }
    if (!kinds.insert(term.kind()).second) return fmt::format("term {} is a second one of its kind", term.name());
  }
  return {};
}

bool is_softplus(const PixelMapping& mapping) {
  const torch::NoGradGuard no_grad;
  const auto probe = torch::tensor({-40.0, -3.0, 0.05, 1.5, 30.0}, torch::kFloat64);
  return at::equal(mapping.forward(probe), softplus_mapping().forward(probe));
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
  return {};
}

std::string obstacle_of_model(ImageModel& model) {
  const auto* net = dynamic_cast<const GriddedNetImpl*>(&model);
  // A class derived from one of ours may do something else.
  if (net == nullptr || typeid(model) != typeid(GriddedNetImpl)) return "the model is not GriddedNet";
  if (net->smoothing() == Smoothing::none) return "the model has no Hann convolution";
  if (net->options().pixel_mapping().name != "softplus") {
    return fmt::format("the pixel mapping is {}, not softplus", net->options().pixel_mapping().name);
  }
  if (!is_softplus(net->options().pixel_mapping())) return "the pixel mapping calls itself softplus, but is another function";
  const auto base = net->base();
  if (base.scalar_type() != torch::kFloat32 && base.scalar_type() != torch::kFloat64) {
    return fmt::format("the base pixels are {}, neither float32 nor float64", c10::toString(base.scalar_type()));
  }
  if (!base.requires_grad()) return "the base pixels are not trained";
  if (!base.is_contiguous() || base.numel() == 0) return "the base pixels are not contiguous";
  return {};
}

}  // namespace

const GriddedLikelihoodImpl* likelihood_of_cells(const Likelihood& likelihood) {
  return typeid(likelihood) == typeid(GriddedLikelihoodImpl) ? dynamic_cast<const GriddedLikelihoodImpl*>(&likelihood) : nullptr;
}

bool is_recordable(const Likelihood& likelihood) {
  const auto& type = typeid(likelihood);
  return type == typeid(GriddedLikelihoodImpl) || type == typeid(ExactLikelihoodImpl) || type == typeid(LooseLikelihoodImpl) ||
         type == typeid(NoiseLikelihoodImpl);
}

std::string obstacle_to_fusing(ImageModel& model, const Objective& objective) {
  if (auto reason = obstacle_of_likelihood(objective.likelihood()); !reason.empty()) return reason;
  if (auto reason = obstacle_of_model(model); !reason.empty()) return reason;
  if (const auto* likelihood = likelihood_of_cells(objective.likelihood())) {
    if (auto reason = obstacle_of_data(model, *likelihood); !reason.empty()) return reason;
  }
  const auto base = model.base();
  return obstacle_of_terms(objective.terms(), base.numel() / (base.size(-1) * base.size(-2) * base.size(-3)), base.scalar_type());
}

ops::FusedTerms weights_of_terms(const std::vector<Term>& terms, std::size_t problem) {
  ops::FusedTerms fused;
  fused.entropy_floor = losses::entropy_gradient_floor;
  for (const auto& term : terms) {
    const auto& settings = term.settings();
    switch (term.kind()) {
      case TermKind::sparsity:
        fused.sparsity = term.weight(problem);
        break;
      case TermKind::tsv:
        fused.tsv = term.weight(problem);
        break;
      case TermKind::edge_clamp:
        fused.edge_clamp = term.weight(problem);
        break;
      case TermKind::psd:
        fused.psd = term.weight(problem);
        break;
      case TermKind::tv_image:
        fused.tv_image = term.weight(problem);
        fused.tv_image_epsilon = settings.at(0);
        break;
      case TermKind::tv_channel:
        fused.tv_channel = term.weight(problem);
        fused.tv_channel_epsilon = settings.at(0);
        break;
      case TermKind::entropy:
        fused.entropy = term.weight(problem);
        fused.prior_intensity = settings.at(0);
        fused.total_flux = settings.at(1);
        break;
      default:
        throw ValueError(fmt::format("term {} is not one of the regularisers of the fused step", term.name()));
    }
  }
  return fused;
}

Tensor inverse_power_of_terms(const std::vector<Term>& terms, const GridCoords& coords, torch::Dtype dtype) {
  const auto psd = std::find_if(terms.begin(), terms.end(), [](const Term& term) { return term.kind() == TermKind::psd; });
  if (psd == terms.end()) throw ValueError("the objective has no term psd");
  return losses::inverse_expected_power(coords, psd->settings().at(0), dtype).narrow(-1, 0, coords.npix() / 2 + 1);
}

}  // namespace mpol::detail
