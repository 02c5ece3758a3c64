#include <mpol_cpp/objective/objective.h>

#include <cmath>
#include <set>
#include <utility>

#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

std::string to_string(Normalize normalize) {
  switch (normalize) {
    case Normalize::cells:
      return "cells";
    case Normalize::visibilities:
      return "visibilities";
    case Normalize::none:
      return "none";
  }
  throw ValueError(fmt::format("{} is not a normalisation", static_cast<int>(normalize)));
}

namespace {

/// @param value  one per problem, (…)
Tensor weighted(const Term& term, const Tensor& value) {
  if (term.weights().size() == 1) return value * term.weights().front();
  if (static_cast<std::int64_t>(term.weights().size()) != value.numel()) {
    throw ShapeError(fmt::format("term {} has weights for {} problems, the model {}: give one for each, or one for all",
                                 term.name(), term.weights().size(), value.numel()));
  }
  return value * at::tensor(term.weights(), value.options()).view(value.sizes());
}

}  // namespace

Tensor ObjectiveValue::table() const {
  std::vector<Tensor> rows = {total.detach(), nll.detach()};
  for (const auto& term : terms) rows.push_back(term.detach());
  return at::stack(rows).view({static_cast<std::int64_t>(rows.size()), -1});
}

Objective::Objective(std::shared_ptr<Likelihood> likelihood, std::vector<Term> terms, Normalize normalize)
    : likelihood_(std::move(likelihood)), terms_(std::move(terms)), normalize_(normalize) {
  if (!likelihood_) throw ValueError("an objective needs a likelihood");
  std::set<std::string> names;
  for (const auto& term : terms_) {
    if (!names.insert(term.name()).second) {
      throw ValueError(fmt::format("two terms are named {}: give one of them another name", term.name()));
    }
  }
  if (!(normalizer() > 0)) {
    throw ValueError(fmt::format("the {} likelihood has {} {} to normalise by; choose another normalisation", likelihood_->name(),
                                 normalizer(), to_string(normalize_)));
  }
}

Objective Objective::divided_by(double normalizer) const {
  if (!(normalizer > 0 && std::isfinite(normalizer)))
    throw ValueError(fmt::format("an objective divided by 2 x {}: it must be a finite number above 0", normalizer));
  auto other = *this;
  other.given_normalizer_ = normalizer;
  return other;
}

double Objective::normalizer() const {
  if (given_normalizer_) return *given_normalizer_;
  switch (normalize_) {
    case Normalize::cells:
      return likelihood_->normalizer();
    case Normalize::visibilities:
      return static_cast<double>(likelihood_->visibilities_count());
    case Normalize::none:
      return 0.5;
  }
  throw ValueError(fmt::format("{} is not a normalisation", static_cast<int>(normalize_)));
}

ObjectiveValue Objective::evaluate(const ModelOutput& output) const {
  check_grid(output.coords());
  constexpr std::int64_t of_problem = 3;
  if (output.sky.dim() < of_problem) {
    throw ShapeError(fmt::format("the model's image has shape {}; it must be (…, nchan, npix, npix)", output.sky.sizes().vec()));
  }
  ObjectiveValue value;
  value.nll = likelihood_->chi_squared(output.sky).to(torch::kFloat64) / (2.0 * normalizer());
  const auto problems = output.sky.sizes().slice(0, static_cast<std::size_t>(output.sky.dim() - of_problem));
  if (value.nll.sizes() != problems) {
    throw ShapeError(
        fmt::format("chi_squared of the {} likelihood has shape {} for an image of shape {}; one value per problem "
                    "has shape {}: sum over the last three dimensions of the image only",
                    likelihood_->name(), value.nll.sizes().vec(), output.sky.sizes().vec(), problems.vec()));
  }
  value.total = value.nll;
  for (const auto& term : terms_) {
    if (term.is_off()) {
      value.terms.push_back(at::zeros_like(value.nll));
      continue;
    }
    const auto unweighted = term.evaluate(output);
    if (unweighted.sizes() != value.nll.sizes()) {
      throw ShapeError(
          fmt::format("term {} has shape {}; one value per problem has shape {}: sum over the last three dimensions "
                      "of the image only",
                      term.name(), unweighted.sizes().vec(), value.nll.sizes().vec()));
    }
    value.terms.push_back(weighted(term, unweighted.to(torch::kFloat64)));
    value.total = value.total + value.terms.back();
  }
  return value;
}

ObjectiveValue Objective::evaluate(ImageModel& model) const {
  auto sky = model.make_sky();
  return evaluate(ModelOutput(model.coords(), model.base(), std::move(sky)));
}

void Objective::check_grid(const GridCoords& coords) const {
  const auto& own = likelihood_->coords();
  if (coords == own) return;
  throw ValueError(fmt::format(
      "the model's grid is {} pixels of {}\", the {} likelihood's {} pixels of {}\": make both with the same GridCoords",
      coords.npix(), coords.cell_size(), likelihood_->name(), own.npix(), own.cell_size()));
}

std::vector<std::string> Objective::columns() const {
  std::vector<std::string> names = {"total", "nll"};
  for (const auto& term : terms_) names.push_back(term.name());
  return names;
}

}  // namespace mpol
