#include <mpol_cpp/solvers/admm.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/sub.h>
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
  blocks_ = blocks();
  constant_norms_ = c_.defined() ? norms(c_) : std::vector<double>(count_, 0.0);
}

std::vector<double> Admm::norms(const Tensor& x) const { return on_host(problem_norms(x, problem_dims())); }

void Admm::iterate(IterationRecord& record, Objective objective) {
  {
    const Stage stage(*this, "minimize");
    auto v = z_ - u_;
    for (const auto& block : blocks_) {
      if (block.has_constant) part(v, block).add_(part(c_, block));
    }
    x_ = model_->minimize(v, factor(rho_, x_), x_);
    ++pairs_;
  }
  const auto& map = model_->map();
  const bool is_identity = dynamic_cast<const IdentityMap*>(&map) != nullptr;
  const auto ax = is_identity ? x_ : model_->mapped(x_);
  {
    const Stage stage(*this, "proximal");
    residuals(update(ax, is_identity), record);
  }
  record.rho = rho_;
  if (objective == Objective::take) {
    const Stage stage(*this, "objective");
    record.objective = this->objective();
  }
  balance(record);
}

std::vector<Admm::Block> Admm::blocks() const {
  std::vector<Block> blocks;
  if (const auto* stacked = dynamic_cast<const StackedProximal*>(g_.get()); stacked != nullptr) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < stacked->maps().size(); ++i) {
      blocks.push_back({stacked->maps()[i], first, stacked->channels()[i], false});
      first += stacked->channels()[i];
    }
  } else {
    blocks.push_back({g_, 0, 0, false});
  }
  for (auto& block : blocks) block.has_constant = c_.defined() && part(c_, block).any().item<bool>();
  return blocks;
}

Tensor Admm::part(const Tensor& all, const Block& block) {
  return block.channels == 0 ? all : all.narrow(-3, block.first, block.channels);
}

void Admm::Squares::add(std::size_t problem, const ops::AdmmSums& sums) {
  primal[problem] += sums.primal;
  change[problem] += sums.change;
  constraint[problem] += sums.constraint;
  auxiliary[problem] += sums.auxiliary;
  multiplier[problem] += sums.multiplier;
}

Admm::Squares Admm::update(const Tensor& ax, bool is_identity) {
  // They may be shared with whoever asked for them, and are written into.
  if (z_.storage().use_count() > 1) z_ = z_.clone();
  if (u_.storage().use_count() > 1) u_ = u_.clone();
  const bool by_change = options_.dual_residual == Options::DualResidual::change;
  const auto last_z = by_change && !is_identity ? z_.clone() : Tensor();
  Squares squares(count_);
  for (const auto& block : blocks_) update_block(block, part(ax, block), squares);
  if (is_identity) {
    squares.dual = by_change ? squares.change : squares.multiplier;
    return squares;
  }
  const auto& map = model_->map();
  auto of_multiplier = squared_lengths(map.adjoint(u_));
  if (by_change) {
    squares.dual = squared_lengths(map.adjoint(z_ - last_z));
    squares.multiplier = std::move(of_multiplier);
  } else {
    squares.dual = std::move(of_multiplier);
  }
  return squares;
}

void Admm::update_block(const Block& block, const Tensor& a, Squares& squares) {
  const double alpha = options_.relaxation;
  auto z = part(z_, block), u = part(u_, block);
  const auto* norm = dynamic_cast<const L1Norm*>(block.map.get());
  const bool is_whole = a.is_contiguous() && z.is_contiguous() && u.is_contiguous();
  if (a.is_cpu() && norm != nullptr && norm->common_weight() && !block.has_constant && is_whole) {
    const auto problems = static_cast<std::int64_t>(count_);
    auto all_z = z.view({problems, -1}), all_u = u.view({problems, -1});
    const auto all_a = a.view({problems, -1});
    for (std::size_t i = 0; i < count_; ++i) {
      const auto k = static_cast<std::int64_t>(i);
      auto own_z = all_z[k], own_u = all_u[k];
      squares.add(i, ops::shrink_update(all_a[k], alpha, *norm->common_weight() / rho_[i], own_z, own_u));
    }
    return;
  }
  const auto c = block.has_constant ? part(c_, block) : Tensor();
  auto v = at::add(u, a, alpha);
  if (alpha != 1) v.add_(z, 1 - alpha);
  if (c.defined()) v.sub_(c, alpha);
  std::vector<double> steps;
  for (const double rho : rho_) steps.push_back(1 / rho);
  const auto next = block.map->apply(v, factor(steps, v));
  if (a.is_cpu() && count_ == 1 && is_whole && v.is_contiguous()) {
    squares.add(0, ops::multiplier_update(a, next.contiguous(), c.defined() ? c.contiguous() : c, v, z, u));
    return;
  }
  const auto left = c.defined() ? a - c : a;
  const auto primal = sums((left - next).square()), change = sums((next - z).square());
  z.copy_(next);
  at::sub_out(u, v, next);
  const auto constraint = sums(a.square()), auxiliary = sums(next.square()), multiplier = sums(u.square());
  for (std::size_t i = 0; i < count_; ++i) squares.add(i, {primal[i], change[i], constraint[i], auxiliary[i], multiplier[i]});
}

std::vector<double> Admm::squared_lengths(const Tensor& x) const {
  if (count_ == 1 && x.is_cpu() && x.is_contiguous()) return {ops::squared_length(x)};
  return sums(x.square());
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
