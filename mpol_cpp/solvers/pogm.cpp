#include <mpol_cpp/solvers/pogm.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/proximal/image_vectors.h>
#include <mpol_cpp/ops/proximal/pogm_end.h>
#include <mpol_cpp/core/octave_falls.h>

namespace mpol {
namespace {

constexpr auto margin_of_curvature = PogmNumbers::margin_of_curvature, rounding_of_curvature = PogmNumbers::rounding_of_curvature;
constexpr std::int64_t numbers_of_problem = 4;
constexpr const char* fista_name = "fista";  // in the state of one

/// z' = z where w is w' already: w' - (w' - y) + (z - y).
constexpr ops::ExtrapolationFactors same_point(double step) { return {step, 0, -1, 1}; }

}  // namespace

Pogm::Pogm(CompositeFunction& function, Tensor start, PogmOptions options)
    : function_(function),
      curvatures_(std::move(options.curvatures)),
      most_passes_(options.most_passes),
      momentum_(options.momentum),
      sum_over_ranks_(std::move(options.sum_over_ranks)),
      y_(std::move(start)) {
  const torch::NoGradGuard no_grad;
  problems_.resize(static_cast<std::size_t>(y_.size(0)));
  for (auto& problem : problems_) problem = {.passes = PogmNumbers::first_passes, .end = ops::PogmEnd::began_anew};
  if (curvatures_.empty()) curvatures_ = function_.curvatures();
  w_ = y_.clone();
  z_ = y_.clone();
  for (auto* room : {&gradient_, &next_, &next_gradient_}) *room = at::empty_like(y_);
}

void Pogm::begin_anew(Problem& problem) {
  problem.t = problem.c = 1;
  problem.end = ops::PogmEnd::began_anew;
}

void Pogm::hold(std::size_t problem) { problems_[problem].end = ops::PogmEnd::held; }

bool Pogm::is_held(std::size_t problem) const { return problems_[problem].end == ops::PogmEnd::held; }

void Pogm::hold_settled(double tolerance, const std::vector<double>& scales, const std::vector<bool>& still) {
  if (iterations() < PogmNumbers::fewest_iterations) return;
  for (std::size_t i = 0; i < problems_.size(); ++i) {
    if (still[i] && has_settled(i, tolerance, scales[i]) && !may_fall_far(i, tolerance * scales[i])) hold(i);
  }
}

void Pogm::prepare() {
  const torch::NoGradGuard no_grad;
  if (!regularizers_.empty()) return;
  regularizers_ = function_.evaluate(y_, gradient_);
}

std::vector<bool> Pogm::raise_curvatures_together(const std::vector<ops::PointSums>& sums) {
  const auto count = problems_.size(), nchan = static_cast<std::size_t>(y_.size(1));
  std::vector<double> both(2 * count, 0.0);  // bends of each problem, then what its curvatures allow
  for (std::size_t image = 0; image < sums.size(); ++image) {
    both[image / nchan] += sums[image].bends;
    both[count + image / nchan] += curvatures_[image] * sums[image].lengths;
  }
  if (sum_over_ranks_) sum_over_ranks_(both);
  std::vector<bool> raised(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    const double bends = both[i], allowed = both[count + i];
    if (is_held(i) || !(bends > allowed * rounding_of_curvature)) continue;
    for (auto image = i * nchan; image < (i + 1) * nchan; ++image) curvatures_[image] *= margin_of_curvature * bends / allowed;
    raised[i] = true;
  }
  return raised;
}

std::vector<bool> Pogm::iterate() {
  const torch::NoGradGuard no_grad;
  prepare();
  const auto count = problems_.size(), nchan = static_cast<std::size_t>(y_.size(1));
  std::vector<double> next_t(count), next_c(count), steps(count * nchan);
  std::vector<ops::ExtrapolationFactors> factors(count * nchan);
  std::vector<std::int64_t> passes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& problem = problems_[i];
    const double t = problem.t, next = (1 + std::sqrt(1 + 4 * t * t)) / 2;
    next_t[i] = next;
    const bool fista = momentum_ == Momentum::fista;
    next_c[i] = fista ? t : (2 * t + next - 1) / next;
    passes[i] = is_held(i) ? 0 : problem.passes;
    for (auto image = i * nchan; image < (i + 1) * nchan; ++image) {
      const double step = 1 / curvatures_[image];
      factors[image] = fista ? ops::ExtrapolationFactors{step, (problem.c - 1) / t, 0, 0}
                             : ops::ExtrapolationFactors{step, (t - 1) / next, t / next, (t - 1) / (problem.c * next)};
      steps[image] = fista ? step : next_c[i] * step;
      if (problem.end == ops::PogmEnd::repeats) factors[image] = same_point(step);
    }
  }
  ops::extrapolate(y_, gradient_, factors, w_, z_);
  function_.proximal(z_, steps, passes, next_);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_held(i)) next_[static_cast<std::int64_t>(i)].copy_(y_[static_cast<std::int64_t>(i)]);
  }
  const auto regularizers = function_.evaluate(next_, next_gradient_);
  const auto sums = ops::compare_points(y_, gradient_, next_, next_gradient_);
  std::vector<double> decreases(count, 0.0), rises(count), steps_too_long(count, 0.0);
  std::vector<bool> moved(count, false);
  const bool mixes_images = function_.mixes_images();
  const auto raised = mixes_images ? raise_curvatures_together(sums) : std::vector<bool>(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_held(i)) continue;
    double rise = regularizers[i] - regularizers_[i];
    if (raised[i]) steps_too_long[i] = 1;
    for (auto image = i * nchan; image < (i + 1) * nchan; ++image) {
      rise += sums[image].along / 2;
      if (mixes_images) continue;
      const double bends = sums[image].bends, lengths = sums[image].lengths;
      if (!(bends > curvatures_[image] * lengths * rounding_of_curvature)) continue;
      curvatures_[image] = margin_of_curvature * bends / lengths;
      steps_too_long[i] = 1;
    }
    rises[i] = rise;
  }
  if (sum_over_ranks_) {
    auto both = rises;
    both.insert(both.end(), steps_too_long.begin(), steps_too_long.end());
    sum_over_ranks_(both);
    const auto middle = both.begin() + static_cast<std::ptrdiff_t>(count);
    rises.assign(both.begin(), middle);
    steps_too_long.assign(middle, both.end());
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& problem = problems_[i];
    const double rise = rises[i];
    if (is_held(i)) continue;
    const bool too_long = steps_too_long[i] > 0;
    if (!too_long && rise > 0 && problem.end == ops::PogmEnd::moved && problem.passes < most_passes_) {
      problem.passes = ops::more_passes(problem.passes, most_passes_);
      problem.end = ops::PogmEnd::repeats;
      continue;
    }
    if (too_long || (rise > 0 && problem.end != ops::PogmEnd::began_anew)) {
      begin_anew(problem);
      continue;
    }
    moved[i] = true;
    decreases[i] = -rise;
    regularizers_[i] = regularizers[i];
    problem.t = next_t[i];
    problem.c = next_c[i];
    problem.end = ops::PogmEnd::moved;
  }
  decreases_.push_back(std::move(decreases));
  if (std::all_of(moved.begin(), moved.end(), [](bool is) { return is; })) {
    ops::copy_images(next_, y_);
    std::swap(gradient_, next_gradient_);
    return moved;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto problem = static_cast<std::int64_t>(i);
    if (moved[i]) {
      y_[problem].copy_(next_[problem]);
      gradient_[problem].copy_(next_gradient_[problem]);
    } else if (is_held(i) || problems_[i].end == ops::PogmEnd::began_anew) {
      w_[problem].copy_(y_[problem]);
      z_[problem].copy_(y_[problem]);
    }
  }
  return moved;
}

bool Pogm::has_converged(double tolerance, const std::vector<double>& scales) const {
  return iterations() >= PogmNumbers::fewest_iterations && has_settled(tolerance, scales);
}

bool Pogm::has_settled(double tolerance, const std::vector<double>& scales) const {
  for (std::size_t i = 0; i < problems_.size(); ++i) {
    if (!has_settled(i, tolerance, scales[i])) return false;
  }
  return true;
}

bool Pogm::has_settled(std::size_t problem, double tolerance, double scale) const {
  return is_held(problem) || fall(problem, decreases_.size() / 2, decreases_.size()) <= tolerance * scale;
}

double Pogm::fall(std::size_t problem, std::size_t from, std::size_t to) const {
  double fallen = 0;
  for (auto k = from; k < to; ++k) fallen += decreases_[k][problem];
  return fallen;
}

bool Pogm::may_fall_far(std::size_t problem, double allowed) const {
  const auto quarter = decreases_.size() / 4, half = decreases_.size() / 2;
  return mpol::may_fall_far(fall(problem, half, decreases_.size()), fall(problem, quarter, half), allowed);
}

SettledProblems settle(Pogm& pogm, std::int64_t most_iterations, double tolerance,
                       const std::function<std::vector<double>()>& scales, const std::function<bool()>& stop) {
  constexpr std::int64_t fewest = 24, between_looks = 4, not_settled = -1;
  SettledProblems settled{Settled::not_yet, std::vector(static_cast<std::size_t>(pogm.images().size(0)), not_settled)};
  const auto goes_on = [](std::int64_t iterations) { return iterations == not_settled; };
  while (pogm.iterations() < most_iterations) {
    pogm.iterate();
    if (stop && stop()) {
      settled.end = Settled::told_to_stop;
      return settled;
    }
    if (pogm.iterations() < fewest || pogm.iterations() % between_looks != 0) continue;
    const auto of_problems = scales();
    for (std::size_t i = 0; i < settled.iterations.size(); ++i) {
      if (!goes_on(settled.iterations[i]) || !pogm.has_settled(i, tolerance, of_problems[i])) continue;
      settled.iterations[i] = pogm.iterations();
      pogm.hold(i);
    }
    if (std::any_of(settled.iterations.begin(), settled.iterations.end(), goes_on)) continue;
    settled.end = Settled::yes;
    return settled;
  }
  return settled;
}

NamedTensors Pogm::state() const {
  const auto count = static_cast<std::int64_t>(problems_.size());
  auto numbers = at::empty({count, numbers_of_problem}, torch::kFloat64);
  auto* number = numbers.mutable_data_ptr<double>();
  for (const auto& problem : problems_) {
    *number++ = problem.t;
    *number++ = problem.c;
    *number++ = static_cast<double>(problem.passes);
    *number++ = static_cast<double>(problem.end);
  }
  auto decreases = at::empty({iterations(), count}, torch::kFloat64);
  auto* decrease = decreases.mutable_data_ptr<double>();
  for (const auto& row : decreases_) decrease = std::copy(row.begin(), row.end(), decrease);
  PogmState state{numbers, at::tensor(curvatures_, torch::kFloat64), decreases, w_.clone(), z_.clone(), {}, {}};
  if (!regularizers_.empty()) {
    state.gradient = gradient_.clone();
    state.regularizers = at::tensor(regularizers_, torch::kFloat64);
  }
  return state.named(momentum_);
}

NamedTensors PogmState::named(Momentum momentum) const {
  NamedTensors named = {{"problems", problems}, {"curvatures", curvatures}, {"decreases", decreases}, {"w", w}, {"z", z}};
  if (momentum == Momentum::fista) named[fista_name] = at::ones({1}, torch::kFloat64);
  if (!regularizers.defined()) return named;
  named["gradient"] = gradient;
  named["regularizers"] = regularizers;
  return named;
}

PogmState PogmState::read(const NamedTensors& state, const Tensor& like, Momentum momentum) {
  const auto has = [&](const char* name) { return state.contains(name); };
  const auto refuse = [](const char* name) {
    throw FileError(fmt::format("the saved state of pogm has no {} that fits these images", name));
  };
  const auto numbers_of = [&](const char* name, std::int64_t columns) {
    if (!has(name)) refuse(name);
    const auto& tensor = state.at(name);
    if (tensor.scalar_type() != torch::kFloat64 || tensor.numel() % columns != 0) refuse(name);
    return tensor.to(torch::kCPU).contiguous().view({-1, columns});
  };
  const auto image_of = [&](const char* name) {
    if (!has(name)) refuse(name);
    const auto& tensor = state.at(name);
    if (tensor.sizes() != like.sizes() || tensor.scalar_type() != like.scalar_type()) refuse(name);
    return tensor.to(like.device()).clone();
  };
  if (has(fista_name) != (momentum == Momentum::fista)) {
    throw FileError(has(fista_name) ? "the saved state is of fista: go on with that, or begin anew"
                                    : "the saved state is of pogm: go on with that, or begin anew");
  }
  const auto count = like.size(0);
  PogmState found;
  found.problems = numbers_of("problems", numbers_of_problem * count).view({-1, numbers_of_problem});
  found.decreases = numbers_of("decreases", count);
  found.curvatures = numbers_of("curvatures", count * like.size(1)).flatten();
  found.w = image_of("w"), found.z = image_of("z");
  if (!has("regularizers")) return found;
  found.regularizers = numbers_of("regularizers", count).flatten();
  found.gradient = image_of("gradient");
  return found;
}

void Pogm::load_state(const NamedTensors& state) {
  auto read = PogmState::read(state, y_, momentum_);
  const auto values = [](const Tensor& tensor) {
    return std::vector<double>(tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel());
  };
  const auto* number = read.problems.const_data_ptr<double>();
  for (auto& problem : problems_) {
    problem.t = *number++;
    problem.c = *number++;
    problem.passes = static_cast<std::int64_t>(*number++);
    problem.end = static_cast<ops::PogmEnd>(*number++);
  }
  const auto count = static_cast<std::ptrdiff_t>(problems_.size());
  const auto decreases = values(read.decreases);
  decreases_.clear();
  for (auto row = decreases.begin(); row != decreases.end(); row += count) decreases_.emplace_back(row, row + count);
  curvatures_ = values(read.curvatures);
  w_ = std::move(read.w);
  z_ = std::move(read.z);
  gradient_ = read.gradient.defined() ? std::move(read.gradient) : at::empty_like(y_);
  regularizers_ = read.regularizers.defined() ? values(read.regularizers) : std::vector<double>();
}

}  // namespace mpol
