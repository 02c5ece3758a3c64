#include <mpol_cpp/solvers/iterative_solver.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

IterativeSolver::IterativeSolver(std::string name, IterationOptions options)
    : name_(std::move(name)), options_(std::move(options)) {
  if (options_.most_iterations < 1) {
    throw ValueError(fmt::format("{}: most_iterations is {}; it must be 1 or more", name_, options_.most_iterations));
  }
  if (!(options_.tolerance >= 0) || !std::isfinite(options_.tolerance)) {
    throw ValueError(fmt::format("{}: the tolerance is {}; it must be finite, 0 or more", name_, options_.tolerance));
  }
  if (options_.problem_dims < 3)
    throw ValueError(fmt::format("{}: problems have {} dimensions; they must have 3 or more", name_, options_.problem_dims));
}

IterativeSolver::Stage::~Stage() { solver_.seconds_[name_] += seconds_since(begin_); }

IterationRecord IterativeSolver::take() {
  const torch::NoGradGuard no_grad;
  const auto begin = std::chrono::steady_clock::now();
  auto record = next(Objective::skip);
  record.seconds = seconds_since(begin);
  return record;
}

IterationRecord IterativeSolver::next(Objective objective) {
  IterationRecord record;
  iterate(record, objective);
  record.iteration = ++iterations_;
  for (const auto* residuals : {&record.primal_residual, &record.dual_residual}) {
    for (const double residual : *residuals) {
      if (std::isfinite(residual)) continue;
      throw DivergedError(
          fmt::format("{}: a residual is no finite number in iteration {}: look for values that are not finite in "
                      "the data, or make steps smaller",
                      name_, iterations_));
    }
  }
  return record;
}

SolverReport IterativeSolver::solve() {
  const torch::NoGradGuard no_grad;
  const auto begin = std::chrono::steady_clock::now();
  seconds_.clear();
  SolverReport report;
  while (iterations_ < options_.most_iterations && !report.converged) {
    auto record = next(options_.callback ? Objective::take : Objective::skip);
    record.seconds = seconds_since(begin);
    report.converged = has_converged(record);
    if (options_.callback && options_.callback(record) == Proceed::stop) break;
  }
  report.iterations = iterations_;
  report.pairs = pairs_;
  report.objective = objective();
  report.gap = gap();
  report.seconds = seconds_;
  report.seconds["total"] = seconds_since(begin);
  return report;
}

bool IterativeSolver::has_converged(const IterationRecord& record) const {
  if (options_.tolerance == 0) return false;
  const auto small = [&](double residual) { return residual <= options_.tolerance; };
  return std::all_of(record.primal_residual.begin(), record.primal_residual.end(), small) &&
         std::all_of(record.dual_residual.begin(), record.dual_residual.end(), small);
}

std::vector<double> IterativeSolver::added(const Tensor& values, std::int64_t problems) const {
  return on_host(values.reshape({problems, -1}).sum(-1));
}

Tensor IterativeSolver::chosen(const std::vector<bool>& moved, const Tensor& values, const Tensor& others) const {
  if (std::all_of(moved.begin(), moved.end(), [](bool is) { return is; })) return values;
  if (std::none_of(moved.begin(), moved.end(), [](bool is) { return is; })) return others;
  std::vector<double> numbers(moved.size());
  std::copy(moved.begin(), moved.end(), numbers.begin());
  return at::where(factor(numbers, values) > 0, values, others);
}

NamedTensors IterativeSolver::state() const {
  NamedTensors state;
  save(state);
  state["iterations"] = at::tensor({iterations_, pairs_}, torch::kInt64);
  return state;
}

void IterativeSolver::load_state(const NamedTensors& state) {
  const auto counts = state.find("iterations");
  if (counts == state.end() || counts->second.numel() != 2)
    throw FileError(fmt::format("the saved state is none of {}: it has no iterations", name_));
  load(state);
  iterations_ = counts->second[0].item<std::int64_t>();
  pairs_ = counts->second[1].item<std::int64_t>();
}

Tensor IterativeSolver::saved(const NamedTensors& state, const std::string& name, const Tensor& like) const {
  const auto found = state.find(name);
  if (found == state.end() || found->second.sizes() != like.sizes() || found->second.scalar_type() != like.scalar_type()) {
    throw FileError(fmt::format("the saved state of {} has no {} of {} {}", name_, name, c10::toString(like.scalar_type()),
                                like.sizes().vec()));
  }
  return found->second.to(like.device()).clone();
}

std::vector<double> IterativeSolver::saved_numbers(const NamedTensors& state, const std::string& name, std::size_t count) const {
  const auto found = state.find(name);
  if (found == state.end() || static_cast<std::size_t>(found->second.numel()) != count) {
    throw FileError(fmt::format("the saved state of {} has no {} numbers {}", name_, count, name));
  }
  return on_host(found->second);
}

}  // namespace mpol
