#include <mpol_cpp/solvers/fista.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// What F may rise by rounding alone, relative.
double rounding_of(const Tensor& x) {
  return 4 * (x.scalar_type() == torch::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                 : static_cast<double>(std::numeric_limits<float>::epsilon()));
}

std::vector<double> reciprocals(const std::vector<double>& values) {
  std::vector<double> results;
  results.reserve(values.size());
  for (const double value : values) results.push_back(1 / value);
  return results;
}

}  // namespace

Fista::Fista(std::shared_ptr<SmoothFunction> f, std::shared_ptr<ProximalMap> g, const Tensor& start, Options options)
    : IterativeSolver("fista", options),
      options_(std::move(options)),
      f_(std::move(f)),
      g_(std::move(g)),
      x_(start.clone()),
      y_(x_),
      count_(static_cast<std::size_t>(problem_count(x_, problem_dims()))),
      momenta_(count_, 1.0),
      curvatures_(options_.curvatures) {
  const torch::NoGradGuard no_grad;
  if (options_.problem_dims != 3)
    throw ValueError(fmt::format("fista: problems have {} dimensions; they must have 3", options_.problem_dims));
  if (!(options_.backtracking_factor > 1)) {
    throw ValueError(
        fmt::format("fista: backtracking by a factor of {} does not end; it must be above 1", options_.backtracking_factor));
  }
  if (curvatures_.empty()) curvatures_ = on_host(f_->curvatures(x_));
  if (curvatures_.size() == 1) curvatures_.resize(count_, curvatures_[0]);
  if (curvatures_.size() != count_) {
    throw ValueError(
        fmt::format("fista: {} curvatures for {} problems: give one for each, or one for all", curvatures_.size(), count_));
  }
  for (const double curvature : curvatures_) {
    if (!(curvature > 0) || !std::isfinite(curvature)) {
      throw ValueError(fmt::format("fista: a curvature is {}; it must be finite and above 0", curvature));
    }
  }
}

Fista::Point Fista::proximal_step(const Tensor& gradient, const std::vector<double>& at_y) {
  constexpr int most_trials = 60;
  Point next;
  const bool backtracks = options_.backtracking == Options::Backtracking::on;
  for (int trial = 0; trial < most_trials; ++trial) {
    {
      const Stage stage(*this, "proximal");
      const auto step = factor(reciprocals(curvatures_), y_);
      next.x = g_->apply(y_ - gradient * step, step);
    }
    if (!backtracks) break;
    const Stage stage(*this, "backtracking");
    next.smooth = on_host(f_->value(next.x));
    const auto change = next.x - y_;
    const auto slopes = sums(change * gradient), squares = sums(change.square());
    bool fits = true;
    for (std::size_t i = 0; i < count_; ++i) {
      const double bound = at_y[i] + slopes[i] + curvatures_[i] / 2 * squares[i];
      if (next.smooth[i] <= bound + rounding_of(y_) * std::abs(bound)) continue;
      curvatures_[i] *= options_.backtracking_factor;
      fits = false;
    }
    if (fits) break;
  }
  if (!needs_values()) return next;
  const Stage stage(*this, "value");
  if (next.smooth.empty()) next.smooth = on_host(f_->value(next.x));
  next.simple = on_host(g_->value(next.x));
  return next;
}

void Fista::iterate(IterationRecord& record, Objective objective) {
  if (needs_values() && values_.empty()) values_ = this->objective();
  Tensor gradient;
  std::vector<double> at_y;
  {
    const Stage stage(*this, "gradient");
    at_y = on_host(f_->value_and_gradient(y_, gradient));
    ++pairs_;
  }
  const auto next = proximal_step(gradient, at_y);
  const auto moves = sums((next.x - y_).square()), lengths = sums(next.x.square());
  std::vector<bool> moved(count_, true);
  std::vector<double> along(count_), back(count_, 0.0);  // y' = x' + along (x' - x) + back (next - x')
  for (std::size_t i = 0; i < count_; ++i) {
    record.primal_residual.push_back(lengths[i] > 0 ? std::sqrt(moves[i] / lengths[i]) : std::sqrt(moves[i]));
    const double t = momenta_[i], following = (1 + std::sqrt(1 + 4 * t * t)) / 2;
    along[i] = (t - 1) / following;
    if (needs_values()) {
      const double value = next.smooth[i] + next.simple[i];
      // With t = 1 the step cannot rise but by rounding.
      const bool rises = value > values_[i] + rounding_of(x_) * std::abs(values_[i]);
      if (rises && (t > 1 || options_.variant == Options::Variant::monotone)) {
        moved[i] = false;
        record.primal_residual.back() = std::max(record.primal_residual.back(), 2 * options_.tolerance);
      } else {
        values_[i] = value;
      }
    }
    const bool begins_anew = !moved[i] && options_.variant == Options::Variant::restart;
    if (!moved[i] && !begins_anew) back[i] = t / following;
    momenta_[i] = begins_anew ? 1 : following;
  }
  const auto x = chosen(moved, next.x, x_);
  auto y = x + (x - x_) * factor(along, x);
  if (std::any_of(back.begin(), back.end(), [](double value) { return value != 0; })) y = y + (next.x - x) * factor(back, x);
  x_ = x;
  y_ = y;
  record.rho = curvatures_;
  if (objective == Objective::take) record.objective = needs_values() ? values_ : this->objective();
}

std::vector<double> Fista::objective() { return on_host(f_->value(x_) + g_->value(x_)); }

std::optional<std::vector<double>> Fista::gap() {
  const auto gap = f_->gap(x_, *g_);
  if (!gap) return std::nullopt;
  return on_host(*gap);
}

void Fista::save(NamedTensors& state) const {
  state["x"] = x_.clone();
  state["y"] = y_.clone();
  state["momenta"] = at::tensor(momenta_, torch::kFloat64);
  state["curvatures"] = at::tensor(curvatures_, torch::kFloat64);
  state["values"] = at::tensor(values_, torch::kFloat64);
  for (const auto& [name, tensor] : g_->state()) state["g." + name] = tensor;
}

void Fista::load(const NamedTensors& state) {
  auto x = saved(state, "x", x_), y = saved(state, "y", y_);
  auto momenta = saved_numbers(state, "momenta", count_), curvatures = saved_numbers(state, "curvatures", count_);
  const auto found = state.find("values");
  auto values = saved_numbers(state, "values", found != state.end() && found->second.numel() == 0 ? 0 : count_);
  x_ = std::move(x);
  y_ = std::move(y);
  momenta_ = std::move(momenta);
  curvatures_ = std::move(curvatures);
  values_ = std::move(values);
  NamedTensors own;
  for (const auto& [name, tensor] : state) {
    if (name.rfind("g.", 0) == 0) own[name.substr(2)] = tensor;
  }
  g_->load_state(own);
}

}  // namespace mpol
