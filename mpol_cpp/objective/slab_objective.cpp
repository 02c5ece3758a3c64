#include <mpol_cpp/objective/slab_objective.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/softplus.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol {
namespace {

constexpr std::int64_t halo = 2;  // one row for the Hann kernel, one for second differences of what it gives

/// Rows before and behind its center that a term's stencil reaches, and how many it needs to be there at all.
struct Reach {
  std::int64_t before, behind;
  std::int64_t rows() const { return before + 1 + behind; }
};

/// Nothing where a term is not one of pixels and their neighbors in the image.
std::optional<Reach> reach_of(TermKind kind) {
  switch (driver_of(kind)) {
    case regularizers::Driver::pixels:
      return Reach{0, 0};
    case regularizers::Driver::differences:
      return Reach{0, 1};
    case regularizers::Driver::curvatures:
      return Reach{1, 1};
    default:
      return {};
  }
}

std::string all_taken() {
  std::vector<std::string> names;
  for (const auto kind : all_regularizers()) {
    if (reach_of(kind)) names.push_back(regularizer_of(kind).name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

SlabObjective::SlabObjective(SlabOperator likelihood, std::vector<Term> terms)
    : likelihood_(std::move(likelihood)), terms_(std::move(terms)) {
  for (const auto& term : terms_) {
    if (!reach_of(term.kind())) {
      throw ValueError(
          fmt::format("term {} of an image in row slabs, which take terms of neighboring pixels: {}", term.name(), all_taken()));
    }
    if (term.weights().size() != 1)
      throw ValueError(fmt::format("term {} has {} weights: an image in row slabs is one problem, of one weight", term.name(),
                                   term.weights().size()));
  }
}

/// @return  as many rows, of which those at an edge within the image are of no use
Tensor SlabObjective::sky_of(const Tensor& base_with_halo) const { return ops::hann(at::softplus(base_with_halo)); }

Tensor SlabObjective::sky(const Tensor& base) const {
  const torch::NoGradGuard no_gradient;
  const auto& slabs = likelihood_.slabs();
  const auto held = slabs.rows_with_halo(slabs.ranks().rank(), halo);
  const auto extended = slabs.with_halo(base, halo);
  return sky_of(extended).narrow(1, slabs.rows().begin - held.begin, slabs.rows().size()).contiguous();
}

/// This rank's part of a weighted term. @param sky  of the rows with halo
Tensor SlabObjective::evaluate(const Term& term, const Tensor& sky) const {
  const auto& slabs = likelihood_.slabs();
  const auto own = slabs.rows(), held = slabs.rows_with_halo(slabs.ranks().rank(), halo);
  const auto reach = reach_of(term.kind()).value();
  const auto begin = std::max<std::int64_t>(own.begin - reach.before, 0), end = std::min(own.end + reach.behind, slabs.npix());
  if (own.is_empty() || end - begin < reach.rows()) return (sky * 0).sum();  // no stencil has its rows here
  const auto block = sky.narrow(1, begin - held.begin, end - begin);
  return term.evaluate(ModelOutput(likelihood_.coords(), {}, block)) * term.weights().front();
}

std::vector<double> SlabObjective::value_and_gradient(const Tensor& base, Tensor& gradient) const {
  const auto& slabs = likelihood_.slabs();
  const auto own = slabs.rows(), held = slabs.rows_with_halo(slabs.ranks().rank(), halo);
  const torch::AutoGradMode with_gradient(true);
  const auto extended = slabs.with_halo(base.detach(), halo).to(torch::kFloat64).clone().requires_grad_();
  const auto sky = sky_of(extended);
  const auto rows = sky.narrow(1, own.begin - held.begin, own.size());
  const auto x = rows.detach().contiguous();
  auto slope = at::empty_like(x);
  const double factor = 1 / (2.0 * static_cast<double>(likelihood_.occupied_cells()));
  std::vector<double> values = {0, likelihood_.value_and_gradient(x, slope) * factor};
  auto sum = (rows * (slope * factor)).sum();  // whose gradient is that of the likelihood
  for (const auto& term : terms_) {
    const auto value = evaluate(term, sky);
    values.push_back(value.item<double>());
    sum = sum + value;
  }
  const auto of_rows = torch::autograd::grad({sum}, {extended}).front();
  gradient.copy_(slabs.add_halo(of_rows, halo));
  slabs.ranks().sum(values);
  for (std::size_t term = 1; term < values.size(); ++term) values.front() += values[term];
  return values;
}

}  // namespace mpol
