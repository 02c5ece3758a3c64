#include <mpol_cpp/solvers/admm.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/proximal/admm_update.h>
#include <mpol_cpp/proximal/norms.h>

namespace mpol {
namespace {

void check(const AdmmOptions& options) {
  const auto refuse = [](const char* name, double value, const char* range) {
    throw ValueError(fmt::format("admm: {} is {}; it must be {}", name, value, range));
  };
  const auto is_above = [](double value, double limit) { return value > limit && std::isfinite(value); };
  if (!is_above(options.rho, 0)) refuse("rho", options.rho, "finite and above 0");
  if (!(options.relaxation > 0 && options.relaxation < 2)) refuse("the relaxation", options.relaxation, "above 0 and below 2");
  if (!(options.absolute_tolerance >= 0)) refuse("the absolute tolerance", options.absolute_tolerance, "0 or more");
  const auto& balance = options.balance;
  if (balance.period < 1) refuse("the period of the balance", static_cast<double>(balance.period), "1 or more");
  if (!is_above(balance.largest_factor, 1))
    refuse("the largest factor of the balance", balance.largest_factor, "finite and above 1");
  if (!is_above(balance.ratio, 1)) refuse("the ratio of the balance", balance.ratio, "finite and above 1");
  if (!(balance.least_rho >= 0)) refuse("the least rho of the balance", balance.least_rho, "0 or more");
  if (!is_above(balance.target, 0)) refuse("the target of the balance", balance.target, "finite and above 0");
}

NamedTensors part_of(const NamedTensors& state, const std::string& prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : state) {
    if (name.rfind(prefix, 0) == 0) part[name.substr(prefix.size())] = tensor;
  }
  return part;
}

}  // namespace

const LinearMap& AdmmModel::map() const {
  static const IdentityMap identity;
  return identity;
}

Admm::Admm(std::shared_ptr<AdmmModel> model, std::shared_ptr<ProximalMap> g, const Tensor& start, Options options,
           const Tensor& x, Tensor constant)
    : IterativeSolver("admm", options),
      options_(std::move(options)),
      model_(std::move(model)),
      g_(std::move(g)),
      x_(x.defined() ? x.clone() : start.clone()),
      z_(start.clone()),
      u_(at::zeros_like(z_)),
      c_(std::move(constant)),
      count_(static_cast<std::size_t>(problem_count(z_, problem_dims()))),
      rho_(count_, options_.rho) {
  check(options_);
  if (c_.defined()) c_ = c_.to(z_).expand_as(z_).contiguous();
  constant_norms_ = c_.defined() ? norms(c_) : std::vector<double>(count_, 0.0);
}

std::vector<double> Admm::norms(const Tensor& x) const { return on_host(problem_norms(x, problem_dims())); }

bool Admm::by_kernels(const Tensor& ax) const {
  return ax.is_cpu() && ax.is_contiguous() && z_.is_contiguous() && u_.is_contiguous();
}

void Admm::iterate(IterationRecord& record, Objective objective) {
  const auto shifted = c_.defined() ? z_ + c_ : z_;
  {
    const Stage stage(*this, "minimize");
    x_ = model_->minimize(shifted - u_, factor(rho_, x_), x_);
    ++pairs_;
  }
  const auto& map = model_->map();
  const bool is_identity = dynamic_cast<const IdentityMap*>(&map) != nullptr;
  const auto ax = is_identity ? x_ : map.apply(x_);
  Squares squares;
  {
    const Stage stage(*this, "proximal");
    const auto* norm = dynamic_cast<const L1Norm*>(g_.get());
    if (is_identity && !c_.defined() && norm != nullptr && norm->common_weight() && by_kernels(ax)) {
      squares = shrink(ax, *norm->common_weight());
    } else {
      squares = update(ax, shifted, is_identity);
    }
  }
  residuals(squares, record);
  record.rho = rho_;
  if (objective == Objective::take) {
    const Stage stage(*this, "objective");
    record.objective = this->objective();
  }
  balance(record);
}

Admm::Squares Admm::shrink(const Tensor& ax, double weight) {
  Squares squares;
  // z may be shared with whoever asked for it: the kernel writes into its own.
  if (z_.storage().use_count() > 1) z_ = z_.clone();
  if (u_.storage().use_count() > 1) u_ = u_.clone();
  const auto problems = static_cast<std::int64_t>(count_);
  auto all_z = z_.view({problems, -1}), all_u = u_.view({problems, -1});
  const auto all_a = ax.view({problems, -1});
  for (std::size_t i = 0; i < count_; ++i) {
    const auto k = static_cast<std::int64_t>(i);
    auto z = all_z[k], u = all_u[k];
    const auto sums = ops::shrink_update(all_a[k], options_.relaxation, weight / rho_[i], z, u);
    squares.primal.push_back(sums.primal);
    squares.constraint.push_back(sums.constraint);
    squares.auxiliary.push_back(sums.auxiliary);
    const bool by_change = options_.dual_residual == Options::DualResidual::change;
    squares.dual.push_back(by_change ? sums.change : sums.multiplier);
    squares.multiplier.push_back(sums.multiplier);
  }
  return squares;
}

Admm::Squares Admm::update(const Tensor& ax, const Tensor& shifted, bool is_identity) {
  const double alpha = options_.relaxation;
  auto v = alpha == 1 ? u_ + ax : at::add(u_, ax, alpha).add_(shifted, 1 - alpha);
  if (c_.defined()) v.sub_(c_);
  std::vector<double> steps;
  for (const double rho : rho_) steps.push_back(1 / rho);
  const auto last_z = z_;
  z_ = g_->apply(v, factor(steps, v));
  if (z_.is_alias_of(v)) z_ = z_.clone();
  Squares squares;
  const auto& map = model_->map();
  const bool by_change = options_.dual_residual == Options::DualResidual::change;
  if (count_ == 1 && by_kernels(ax) && v.is_contiguous()) {
    const auto sums = ops::multiplier_update(ax, last_z.contiguous(), z_.contiguous(), c_, v);
    squares.primal = {sums.primal};
    squares.constraint = {sums.constraint};
    squares.auxiliary = {sums.auxiliary};
    squares.multiplier = {sums.multiplier};
    squares.dual = {by_change ? sums.change : sums.multiplier};
    u_ = v;
  } else {
    u_ = v.sub_(z_);
    squares.primal = sums(((c_.defined() ? ax - c_ : ax) - z_).square());
    squares.constraint = sums(ax.square());
    squares.auxiliary = sums(z_.square());
    squares.multiplier = sums(u_.square());
    if (is_identity) squares.dual = by_change ? sums((z_ - last_z).square()) : squares.multiplier;
  }
  if (is_identity) return squares;
  if (by_change) squares.dual = sums(map.adjoint(z_ - last_z).square());
  const auto of_multiplier = sums(map.adjoint(u_).square());
  (by_change ? squares.multiplier : squares.dual) = of_multiplier;
  return squares;
}

void Admm::residuals(const Squares& squares, IterationRecord& record) {
  const auto constraints = static_cast<double>(z_.numel()) / static_cast<double>(count_);
  const auto unknowns = static_cast<double>(x_.numel()) / static_cast<double>(count_);
  primal_bounds_.resize(count_);
  dual_bounds_.resize(count_);
  for (std::size_t i = 0; i < count_; ++i) {
    const auto or_one = [](double norm) { return norm > 0 ? norm : 1.0; };
    const double rn = std::max({std::sqrt(squares.constraint[i]), std::sqrt(squares.auxiliary[i]), constant_norms_[i]});
    const double sn = rho_[i] * std::sqrt(squares.multiplier[i]), dual = rho_[i] * std::sqrt(squares.dual[i]);
    const bool normalized = options_.residuals == Options::Residuals::normalized;
    const double r_unit = normalized ? or_one(rn) : 1, s_unit = normalized ? or_one(sn) : 1;
    record.primal_residual.push_back(std::sqrt(squares.primal[i]) / r_unit);
    record.dual_residual.push_back(dual / s_unit);
    primal_bounds_[i] =
        std::sqrt(constraints) * options_.absolute_tolerance / r_unit + options_.tolerance * (normalized ? 1 : rn);
    dual_bounds_[i] = std::sqrt(unknowns) * options_.absolute_tolerance / s_unit + options_.tolerance * (normalized ? 1 : sn);
  }
}

void Admm::balance(const IterationRecord& record) {
  const auto& balance = options_.balance;
  if (balance.rho == Options::Balance::Rho::fixed) return;
  if (iterations() == 0 || (iterations() + 1) % balance.period != 0) return;  // nothing is known after the first
  std::vector<double> shrink(count_, 1.0);
  bool changes = false;
  for (std::size_t i = 0; i < count_; ++i) {
    const double r = record.primal_residual[i], s = record.dual_residual[i], xi = balance.target;
    double most = balance.largest_factor;
    if (balance.scaling == Options::Balance::Scaling::by_residuals && r > 0 && s > 0) {
      most = std::min(most, std::sqrt(r > s * xi ? r / (s * xi) : s * xi / r));
    }
    double change = 1;
    if (r > xi * balance.ratio * s) change = most;
    else if (s > balance.ratio / xi * r) change = std::min(1.0, std::max(1 / most, balance.least_rho / rho_[i]));
    rho_[i] *= change;
    shrink[i] = 1 / change;
    changes = changes || change != 1;
  }
  if (changes) u_.mul_(factor(shrink, u_));
}

bool Admm::has_converged(const IterationRecord& record) const {
  if (options_.tolerance == 0 && options_.absolute_tolerance == 0) return false;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!(record.primal_residual[i] < primal_bounds_[i] && record.dual_residual[i] < dual_bounds_[i])) return false;
  }
  return true;
}

std::vector<double> Admm::objective() {
  const auto problems = static_cast<std::int64_t>(count_);
  Tensor at_g = z_;
  if (options_.objective_at == Options::ObjectiveAt::primal) {
    at_g = model_->map().apply(x_);
    if (c_.defined()) at_g = at_g - c_;
  }
  auto values = added(model_->value(options_.objective_at == Options::ObjectiveAt::auxiliary ? z_ : x_), problems);
  const auto simple = added(g_->value(at_g), problems);
  for (std::size_t i = 0; i < count_; ++i) values[i] += simple[i];
  return values;
}

void Admm::save(NamedTensors& state) const {
  state["x"] = x_.clone();
  state["z"] = z_.clone();
  state["u"] = u_.clone();
  state["rho"] = at::tensor(rho_, torch::kFloat64);
  for (const auto& [name, tensor] : g_->state()) state["g." + name] = tensor;
  for (const auto& [name, tensor] : model_->state()) state["f." + name] = tensor;
}

void Admm::load(const NamedTensors& state) {
  auto x = saved(state, "x", x_), z = saved(state, "z", z_), u = saved(state, "u", u_);
  auto rho = saved_numbers(state, "rho", count_);
  x_ = std::move(x);
  z_ = std::move(z);
  u_ = std::move(u);
  rho_ = std::move(rho);
  g_->load_state(part_of(state, "g."));
  model_->load_state(part_of(state, "f."));
}

}  // namespace mpol
