#include <mpol_cpp/likelihoods/batched_likelihood.h>

#include <algorithm>
#include <typeinfo>
#include <utility>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {
namespace {

constexpr std::int64_t dimensions_of_problem = 3;

std::string name_of(std::size_t problem) { return fmt::format("problem_{}", problem); }

const GridCoords& grid_of(const std::vector<std::shared_ptr<Likelihood>>& problems) {
  if (problems.empty()) throw ValueError("a batch of 0 likelihoods: give one for each problem");
  for (const auto& each : problems) {
    if (!each) throw ValueError("a likelihood of the batch is an empty pointer: give one for each problem");
    if (each->of_problems().size() != 1)
      throw ValueError("a likelihood of the batch is one of several problems: give them singly");
    if (each->coords() == problems.front()->coords()) continue;
    throw ValueError(
        fmt::format("the likelihoods of a batch are of grids that differ, {} pixels of {}\" and {} of {}\": make all "
                    "with the same GridCoords",
                    problems.front()->coords().npix(), problems.front()->coords().cell_size(), each->coords().npix(),
                    each->coords().cell_size()));
  }
  return problems.front()->coords();
}

template <typename Number, typename Of>
Number sum_of(const std::vector<std::shared_ptr<Likelihood>>& problems, const Of& of) {
  Number sum = 0;
  for (const auto& each : problems) sum += of(*each);
  return sum;
}

}  // namespace

BatchedLikelihoodImpl::BatchedLikelihoodImpl(std::vector<std::shared_ptr<Likelihood>> problems)
    : Likelihood(grid_of(problems)), problems_(std::move(problems)) {
  add_modules();
}

void BatchedLikelihoodImpl::reset() {
  for (auto& each : problems_) each = with_interface<Likelihood>(each->as_module().clone(), "Likelihood");  // of this copy alone
  add_modules();
}

void BatchedLikelihoodImpl::add_modules() {
  for (std::size_t k = 0; k < problems_.size(); ++k)
    register_module(name_of(k), std::shared_ptr<torch::nn::Module>(problems_[k], &problems_[k]->as_module()));
}

Tensor BatchedLikelihoodImpl::apart(const Tensor& sky) const {
  const auto count = static_cast<std::int64_t>(problems_.size());
  const bool fits = sky.dim() >= dimensions_of_problem && sky.numel() == count * sky.size(-3) * sky.size(-2) * sky.size(-1);
  if (!fits) {
    throw ShapeError(
        fmt::format("the image has shape {}; data of {} problems need ({}, nchan, npix, npix)", sky.sizes().vec(), count, count));
  }
  return sky.view({count, sky.size(-3), sky.size(-2), sky.size(-1)});
}

Tensor BatchedLikelihoodImpl::chi_squared(const Tensor& sky) {
  const auto images = apart(sky.contiguous());
  std::vector<Tensor> values;
  for (std::size_t k = 0; k < problems_.size(); ++k)
    values.push_back(problems_[k]->chi_squared(images[static_cast<std::int64_t>(k)]));
  return at::stack(values).view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - dimensions_of_problem)));
}

Tensor BatchedLikelihoodImpl::of_each(const Tensor& sky, Tensor& gradient,
                                      const std::function<Tensor(Likelihood&, const Tensor&, Tensor&)>& evaluate) const {
  losses::detail::check_gradient(sky, gradient);
  const auto images = apart(sky.contiguous()), slopes = apart(gradient);
  std::vector<Tensor> values;
  for (std::size_t k = 0; k < problems_.size(); ++k) {
    auto slope = slopes[static_cast<std::int64_t>(k)];
    values.push_back(evaluate(*problems_[k], images[static_cast<std::int64_t>(k)], slope).to(torch::kFloat64));
  }
  return at::stack(values);
}

Tensor BatchedLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  const auto values = of_each(sky, gradient, [&](Likelihood& own, const Tensor& image, Tensor& slope) {
    return own.value_and_gradient(image, slope, accumulate);
  });
  return values.view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - dimensions_of_problem)));
}

bool BatchedLikelihoodImpl::tells_channels() const {
  return typeid(*this) == typeid(BatchedLikelihoodImpl) &&
         std::all_of(problems_.begin(), problems_.end(), [](const auto& each) { return each->tells_channels(); });
}

Tensor BatchedLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  const auto values = of_each(sky, gradient, [&](Likelihood& own, const Tensor& image, Tensor& slope) {
    return own.channel_values_and_gradient(image, slope, accumulate);
  });
  return values.view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2)));
}

std::vector<const Likelihood*> BatchedLikelihoodImpl::of_problems() const {
  std::vector<const Likelihood*> each;
  for (const auto& problem : problems_) each.push_back(problem.get());
  return each;
}

double BatchedLikelihoodImpl::normalizer() const {
  return sum_of<double>(problems_, [](const Likelihood& each) { return each.normalizer(); });
}

std::int64_t BatchedLikelihoodImpl::samples() const {
  return sum_of<std::int64_t>(problems_, [](const Likelihood& each) { return each.samples(); });
}

std::int64_t BatchedLikelihoodImpl::visibilities_count() const {
  return sum_of<std::int64_t>(problems_, [](const Likelihood& each) { return each.visibilities_count(); });
}

std::int64_t BatchedLikelihoodImpl::memory_bytes() const {
  return sum_of<std::int64_t>(problems_, [](const Likelihood& each) { return each.memory_bytes(); });
}

bool BatchedLikelihoodImpl::is_quadratic() const {
  return std::all_of(problems_.begin(), problems_.end(), [](const auto& each) { return each->is_quadratic(); });
}

bool BatchedLikelihoodImpl::can_be_recorded() const {
  return std::all_of(problems_.begin(), problems_.end(), [](const auto& each) { return each->can_be_recorded(); });
}

std::string BatchedLikelihoodImpl::obstacle_to_recording() const {
  return "has a normalizer for each problem, which the host holds";
}

NamedTensors BatchedLikelihoodImpl::working_state() const {
  NamedTensors all;
  for (std::size_t k = 0; k < problems_.size(); ++k) {
    for (const auto& [name, tensor] : problems_[k]->working_state()) all[name_of(k) + "." + name] = tensor;
  }
  return all;
}

void BatchedLikelihoodImpl::load_working_state(const NamedTensors& state) {
  std::vector<NamedTensors> own(problems_.size());
  for (const auto& [name, tensor] : state) {
    const auto owner = [&, &whole = name](std::size_t k) { return whole.starts_with(name_of(k) + "."); };
    std::size_t k = 0;
    while (k < own.size() && !owner(k)) ++k;
    if (k == own.size()) throw FileError(fmt::format("the likelihood of {} problems has no state {}", own.size(), name));
    own[k][name.substr(name_of(k).size() + 1)] = tensor;
  }
  for (std::size_t k = 0; k < own.size(); ++k) problems_[k]->load_working_state(own[k]);
}

std::string BatchedLikelihoodImpl::name() const {
  const auto first = problems_.front()->name();
  const bool alike = std::all_of(problems_.begin(), problems_.end(), [&](const auto& each) { return each->name() == first; });
  return alike ? first : "batched";
}

}  // namespace mpol
