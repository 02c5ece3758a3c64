#include <mpol_cpp/solvers/primal_dual.h>

#include <cmath>
#include <utility>

#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

std::vector<double> for_each_problem(std::vector<double> values, std::size_t count, const char* name) {
  if (values.size() == 1) values.resize(count, values[0]);
  if (values.size() != count) {
    throw ValueError(
        fmt::format("primal-dual: {} {} for {} problems: give one for each, or one for all", values.size(), name, count));
  }
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value))
      throw ValueError(fmt::format("primal-dual: one of the {} is {}; they must be finite and above 0", name, value));
  }
  return values;
}

NamedTensors proximal_state(const NamedTensors& state, const std::string& prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : state) {
    if (name.rfind(prefix, 0) == 0) part[name.substr(prefix.size())] = tensor;
  }
  return part;
}

}  // namespace

PrimalDual::PrimalDual(std::shared_ptr<SmoothFunction> f, std::shared_ptr<ProximalMap> g, std::shared_ptr<const LinearMap> map,
                       std::shared_ptr<ProximalMap> h, const Tensor& start, Options options)
    : IterativeSolver("primal-dual", options),
      options_(std::move(options)),
      f_(std::move(f)),
      g_(std::move(g)),
      h_(std::move(h)),
      map_(std::move(map)),
      x_(start.clone()),
      allowed_(x_),
      count_(static_cast<std::size_t>(problem_count(x_, problem_dims()))) {
  const torch::NoGradGuard no_grad;
  if (options_.problem_dims != 3)
    throw ValueError(fmt::format("primal-dual: problems have {} dimensions; they must have 3", options_.problem_dims));
  const double most_relaxation = f_ ? 1.5 : 2;
  if (!(options_.relaxation > 0 && options_.relaxation < most_relaxation)) {
    throw ValueError(
        fmt::format("primal-dual: the relaxation is {}; it must be above 0 and below {}", options_.relaxation, most_relaxation));
  }
  y_ = at::zeros_like(map_->apply(x_));
  auto norms = options_.squared_norms.empty() ? on_host(squared_norm(*map_, x_)) : options_.squared_norms;
  norms = for_each_problem(std::move(norms), count_, "squared norms");
  if (options_.dual_steps.empty()) {
    for (const double norm : norms) dual_steps_.push_back(1 / std::sqrt(norm));
  } else {
    dual_steps_ = for_each_problem(options_.dual_steps, count_, "dual steps");
  }
  const auto curvatures = f_ ? on_host(f_->curvatures(x_)) : std::vector<double>(count_, 0.0);
  // curvature/2 would do for convergence; the whole leaves room for relaxation.
  for (std::size_t i = 0; i < count_; ++i) primal_steps_.push_back(1 / (curvatures[i] + dual_steps_[i] * norms[i]));
}

void PrimalDual::iterate(IterationRecord& record, Objective objective) {
  auto slope = map_->adjoint(y_);
  if (f_) {
    const Stage stage(*this, "gradient");
    Tensor gradient;
    f_->value_and_gradient(x_, gradient);
    slope = slope + gradient;
    ++pairs_;
  }
  {
    const Stage stage(*this, "proximal");
    const auto step = factor(primal_steps_, x_);
    allowed_ = g_->apply(x_ - slope * step, step);
  }
  Tensor y;
  {
    const Stage stage(*this, "dual");
    const auto step = factor(dual_steps_, y_);
    y = conjugate_proximal(*h_, y_ + map_->apply(2 * allowed_ - x_) * step, step);
    ++pairs_;
  }
  const auto change = allowed_ - x_, dual_change = y - y_;
  const auto of_x = sums(change.square()), of_y = sums(dual_change.square()), x_squares = sums(allowed_.square()),
             y_squares = sums(y.square());
  const auto relative = [](double square, double whole) { return whole > 0 ? std::sqrt(square / whole) : std::sqrt(square); };
  for (std::size_t i = 0; i < count_; ++i) {
    record.primal_residual.push_back(relative(of_x[i], x_squares[i]));
    record.dual_residual.push_back(relative(of_y[i], y_squares[i]));
  }
  x_ = options_.relaxation == 1 ? allowed_ : x_ + options_.relaxation * change;
  y_ = options_.relaxation == 1 ? y : y_ + options_.relaxation * dual_change;
  if (objective == Objective::take) record.objective = this->objective();
}

std::vector<double> PrimalDual::objective() {
  auto value = g_->value(allowed_) + h_->value(map_->apply(allowed_));
  if (f_) value = value + f_->value(allowed_);
  return on_host(value);
}

void PrimalDual::save(NamedTensors& state) const {
  state["x"] = x_.clone();
  state["allowed"] = allowed_.clone();
  state["y"] = y_.clone();
  for (const auto& [name, tensor] : g_->state()) state["g." + name] = tensor;
  for (const auto& [name, tensor] : h_->state()) state["h." + name] = tensor;
}

void PrimalDual::load(const NamedTensors& state) {
  auto x = saved(state, "x", x_), allowed = saved(state, "allowed", x_), y = saved(state, "y", y_);
  x_ = std::move(x);
  allowed_ = std::move(allowed);
  y_ = std::move(y);
  g_->load_state(proximal_state(state, "g."));
  h_->load_state(proximal_state(state, "h."));
}

}  // namespace mpol
