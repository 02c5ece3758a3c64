#include <mpol_cpp/objective/objective.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

constexpr std::int64_t dimensions_of_problem = 3;  // of an image: channels, y, x

double normalizer_of(const Likelihood& likelihood, Normalize normalize) {
  switch (normalize) {
    case Normalize::cells:
      return likelihood.normalizer();
    case Normalize::visibilities:
      return static_cast<double>(likelihood.visibilities_count());
    case Normalize::none:
      return 0.5;
  }
  throw ValueError(fmt::format("{} is not a normalisation", static_cast<int>(normalize)));
}

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
  for (const double normalizer : normalizers()) {
    if (normalizer > 0) continue;
    throw ValueError(fmt::format("the {} likelihood has {} {} to normalise by; choose another normalisation", likelihood_->name(),
                                 normalizer, to_string(normalize_)));
  }
}

Objective Objective::divided_by(double normalizer) const {
  if (!(normalizer > 0 && std::isfinite(normalizer)))
    throw ValueError(fmt::format("an objective divided by 2 x {}: it must be a finite number above 0", normalizer));
  auto other = *this;
  other.given_normalizer_ = normalizer;
  return other;
}

Objective Objective::over(const std::shared_ptr<Communicator>& ranks) const {
  auto other = *this;
  const auto joins = [](const Term& term) { return !term.is_off() && term.joins_channels(); };
  if (neighbors_ || !ranks || ranks->is_alone() || std::none_of(terms_.begin(), terms_.end(), joins)) return other;
  other.neighbors_ = std::make_shared<ChannelNeighbors>(ranks);
  for (auto& term : other.terms_) term = term.over(other.neighbors_);
  return other;
}

std::vector<double> Objective::normalizers() const {
  if (given_normalizer_) return {*given_normalizer_};
  std::vector<double> normalizers;
  for (const auto* likelihood : likelihood_->of_problems()) normalizers.push_back(normalizer_of(*likelihood, normalize_));
  return normalizers;
}

double Objective::normalizer() const {
  const auto each = normalizers();
  if (each.size() == 1) return each.front();
  throw ValueError(
      fmt::format("the {} problems of this objective have normalizers of their own: ask for normalizers()", each.size()));
}

Tensor Objective::nll(const Tensor& chi_squared) const {
  const auto each = normalizers();
  const auto precise = chi_squared.to(torch::kFloat64);
  if (each.size() == 1) return precise / (2.0 * each.front());
  const auto problems = std::ssize(each);
  if (precise.numel() % problems != 0) {
    throw ShapeError(
        fmt::format("chi^2 of {} problems, whose likelihood has data of {}: give one value for each", precise.numel(), problems));
  }
  const auto divisors = (2.0 * at::tensor(each, torch::kFloat64)).to(precise.device()).unsqueeze(1);
  return (precise.reshape({problems, -1}) / divisors).view(precise.sizes());
}

void Objective::normalize_gradient(Tensor& gradient) const {
  auto each = normalizers();
  if (each.size() == 1) {
    gradient.mul_(1 / (2 * each.front()));
    return;
  }
  for (auto& value : each) value = 1 / (2 * value);
  std::vector<std::int64_t> shape = gradient.sizes().vec();
  std::fill(shape.end() - dimensions_of_problem, shape.end(), 1);
  gradient.mul_(at::tensor(each, torch::kFloat64).to(gradient.device(), gradient.scalar_type()).view(shape));
}

ObjectiveValue Objective::evaluate(const ModelOutput& output) const {
  check_grid(output.coords());
  if (output.sky.dim() < dimensions_of_problem) {
    throw ShapeError(fmt::format("the model's image has shape {}; it must be (…, nchan, npix, npix)", output.sky.sizes().vec()));
  }
  ObjectiveValue value;
  const auto chi_squared = likelihood_->chi_squared(output.sky);
  const auto problems = output.sky.sizes().slice(0, static_cast<std::size_t>(output.sky.dim() - dimensions_of_problem));
  if (chi_squared.sizes() != problems) {
    throw ShapeError(
        fmt::format("chi_squared of the {} likelihood has shape {} for an image of shape {}; one value per problem "
                    "has shape {}: sum over the last three dimensions of the image only",
                    likelihood_->name(), chi_squared.sizes().vec(), output.sky.sizes().vec(), problems.vec()));
  }
  value.nll = nll(chi_squared);
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
  return evaluate(ModelOutput(model.coords(), model.base(), std::move(sky), model.signed_pixels()));
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
