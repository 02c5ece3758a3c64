#include <mpol_cpp/train/steps/engines/fused_objective.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/regularizers/formulas.h>
#include <mpol_cpp/regularizers/regularizers.h>
#include <mpol_cpp/models/gridded_net.h>

namespace mpol::detail {
namespace {

std::int64_t problems_of(const Tensor& base) { return base.numel() / (base.size(-1) * base.size(-2) * base.size(-3)); }

/// Says which setting of a term is too small for the kernels, which take its reciprocal root; empty where none is.
std::string obstacle_of_settings(const Term& term, torch::Dtype dtype) {
  if (dtype != torch::kFloat32) return {};
  const auto& settings = regularizer_of(term.kind()).settings;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (!settings[i].is_divided_by || term.settings().at(i) >= std::numeric_limits<float>::min()) continue;
    return fmt::format("term {} has {} {:.3g}, below the normal numbers of float32", term.name(), settings[i].name,
                       term.settings().at(i));
  }
  return {};
}

std::string obstacle_of_terms(const std::vector<Term>& terms, std::int64_t problems, torch::Dtype dtype) {
  std::set<TermKind> kinds;
  for (const auto& term : terms) {
    if (!is_fused(term.kind())) return fmt::format("term {} is not one of the regularisers of the fused step", term.name());
    if (term.weights().size() > 1 && static_cast<std::int64_t>(term.weights().size()) != problems) {
      return fmt::format("term {} has weights for {} problems, the model {}", term.name(), term.weights().size(), problems);
    }
    if (!term.channel_factors().empty()) return fmt::format("term {} has weights of channels", term.name());
    if (auto reason = obstacle_of_settings(term, dtype); !reason.empty()) return reason;
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

std::string obstacle_of_data(const ImageModel& model, const Likelihood& likelihood) {
  const auto base = model.base();
  const auto of_problems = static_cast<std::int64_t>(likelihood.of_problems().size());
  if (const auto problems = problems_of(base); of_problems != 1 && of_problems != problems)
    return fmt::format("the likelihood has data of {} problems, the model {}", of_problems, problems);
  for (const auto& cells : cells_of(likelihood)) {
    if (!(likelihood.coords() == model.coords()) || base.size(-3) != cells.nchan)
      return "the model's grid or channels are not those of the likelihood";
  }
  return {};
}

std::string obstacle_of_model(ImageModel& model) {
  const auto* net = model.gridded_net();
  if (net == nullptr) return "the model is not GriddedNet";
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

/// Weights of one problem and settings of the regularizers. @throws ValueError for a term that is not one of them
ops::FusedTerms weights_of_terms(const std::vector<Term>& terms, std::size_t problem) {
  ops::FusedTerms fused;
  for (const auto& term : terms) {
    if (!is_fused(term.kind())) {
      throw ValueError(fmt::format("term {} is not one of the regularisers of the fused step", term.name()));
    }
    fused.weight(term.kind()) = term.weight(problem);
    std::copy(term.settings().begin(), term.settings().end(), fused.settings(term.kind()));
  }
  return fused;
}

/// The weights of cells of the regularizer of the half plane, (npix, npix/2 + 1) float64; they are the same at -kv. Undefined
/// where there is none, or has no weight. @throws ValueError where they overflow in the dtype of the fit
Tensor inverse_power_of_terms(const std::vector<Term>& terms, const GridCoords& coords, torch::Dtype dtype) {
  Tensor weights;
  regularizers::for_each(regularizers::KindsOf<regularizers::Driver::half_plane>{}, [&](auto kind) {
    for (const auto& term : terms) {
      if (term.kind() != kind || term.is_off()) continue;
      weights = regularizers::Known<kind>::cell_weights(coords, term.settings().data(), dtype == torch::kFloat64)
                    .narrow(-1, 0, coords.npix() / 2 + 1);
    }
  });
  return weights;
}

}  // namespace

std::string obstacle_to_fusing(ImageModel& model, const Objective& objective) {
  if (objective.neighbors()) return "terms join channels of several ranks";
  if (auto reason = obstacle_of_likelihood(objective.likelihood()); !reason.empty()) return reason;
  if (auto reason = obstacle_of_model(model); !reason.empty()) return reason;
  if (auto reason = obstacle_of_data(model, objective.likelihood()); !reason.empty()) return reason;
  return obstacle_of_terms(objective.terms(), problems_of(model.base()), model.base().scalar_type());
}

std::vector<CellData> cells_of(const Likelihood& likelihood) {
  std::vector<CellData> cells;
  for (const auto* of_problem : likelihood.of_problems()) {
    auto own = of_problem->cells();
    if (!own) return {};
    cells.push_back(std::move(*own));
  }
  return cells;
}

ops::FusedSettings fused_settings(const ImageModel& model, const Objective& objective) {
  const auto base = model.base();
  ops::FusedSettings settings;
  settings.npix = base.size(-1);
  settings.nchan = base.size(-3);
  settings.problems = problems_of(base);
  settings.cell_area = model.coords().cell_area();
  const auto normalizers = objective.normalizers();
  settings.likelihood_scale = chi_squared_scale(normalizers, 0);
  settings.terms = weights_of_terms(objective.terms(), 0);
  for (std::int64_t problem = 0; problem < settings.problems; ++problem) {
    const auto number = static_cast<std::size_t>(problem);
    settings.own.push_back({chi_squared_scale(normalizers, number), weights_of_terms(objective.terms(), number)});
  }
  settings.inverse_power = inverse_power_of_terms(objective.terms(), model.coords(), base.scalar_type());
  return settings;
}

ops::FusedUpdate fused_update(OptimizerKind kind) {
  if (kind == OptimizerKind::adam) return ops::FusedUpdate::adam;
  return kind == OptimizerKind::sgd ? ops::FusedUpdate::sgd : ops::FusedUpdate::none;
}

}  // namespace mpol::detail
