#pragma once

#include <memory>
#include <vector>

#include <mpol_cpp/proximal/linear_map.h>
#include <mpol_cpp/proximal/proximal_map.h>
#include <mpol_cpp/solvers/iterative_solver.h>

namespace mpol {

namespace ops {
struct AdmmSums;
}

/// What ADMM needs to know of f and A: how to minimize f with the quadratic of the constraint.
class AdmmModel {
 public:
  virtual ~AdmmModel() = default;
  /// argmin_x f(x) + rho |A x - v|^2 / 2, or something nearer to it than the last x: ADMM forgives some inexactness.
  /// @param rho  of each problem, as a factor of x
  /// @param x    the last one
  virtual Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& x) = 0;
  /// f of each problem, float64.
  virtual Tensor value(const Tensor& x) = 0;
  /// A; the identity unless something else is said.
  virtual const LinearMap& map() const;
  /// A x of what minimize() has just given, for models that know it by then.
  virtual Tensor mapped(const Tensor& x) { return map().apply(x); }
  /// What the next minimize() depends on besides its arguments: warm starts.
  virtual NamedTensors state() const { return {}; }
  virtual void load_state(const NamedTensors& /*state*/) {}  ///< takes up what state() gave
};

/// Options of an Admm.
struct AdmmOptions : IterationOptions {
  AdmmOptions() { tolerance = 1e-3; }

  double rho = 1;                 ///< the penalty to begin with, > 0
  double relaxation = 1.8;        ///< alpha, 0 < alpha < 2; 1 is none
  double absolute_tolerance = 0;  ///< is added to the tolerance, times sqrt(number of values)/norm, >= 0
  /// What the residuals are divided by before they are compared with the tolerance.
  enum class Residuals {
    normalized,                         ///< by the norms of their terms
    standard                            ///< by nothing
  } residuals = Residuals::normalized;  ///< relative to the norms of their terms, or not

  /// Balancing of residuals: rho grows where the primal residual is more than `ratio` times the dual one, and shrinks where it is
  /// less.
  struct Balance {
    /// Whether rho changes in the run.
    enum class Rho {
      fixed,                 ///< it stays
      automatic              ///< it follows the residuals
    } rho = Rho::automatic;  ///< of all problems
    /// By how much it changes at once.
    enum class Scaling {
      by_residuals,  ///< the root of how far the residuals' ratio is from the target, at most the largest factor
      constant       ///< the largest factor
    } scaling = Scaling::by_residuals;  ///< of each problem for itself
    std::int64_t period = 10;           ///< iterations from one change to the next, >= 1
    double largest_factor = 1000;       ///< that rho is multiplied or divided with at once, > 1
    double ratio = 1.2;                 ///< > 1
    double target = 1;                  ///< of primal to dual residual, > 0
    double least_rho = 0;               ///< below which it is not balanced, >= 0
  } balance = {};                       ///< of the residuals, by rho

  /// Where F is taken: f(x) + g(z), f(x) + g(A x - c), or, where A is the identity, f(z) + g(z).
  enum class ObjectiveAt {
    both,                              ///< f(x) + g(z)
    primal,                            ///< f(x) + g(A x - c)
    auxiliary                          ///< f(z) + g(z)
  } objective_at = ObjectiveAt::both;  ///< which of these
  /// What the dual residual looks at: the change rho A*(z' - z), or the multiplier, rho A* u, which vanishes with f = 0.
  enum class DualResidual {
    change,                                ///< rho A*(z' - z)
    multiplier                             ///< rho A* u
  } dual_residual = DualResidual::change;  ///< which of these
};

/// The alternating direction method of multipliers for  f(x) + g(z),  A x - z = c, with scaled multipliers u and over-relaxation:
///
///   x' = argmin_x f(x) + rho |A x - z - c + u|^2 / 2
///   a  = alpha A x' + (1 - alpha)(z + c)
///   z' = prox_g(a - c + u, 1/rho),  u' = u + a - c - z'
///
/// It has converged when the residuals |A x - z - c| and rho |A* (z' - z)|, relative to the largest of their terms, are below the
/// tolerance.
/// Source: Boyd et al. 2011; Wohlberg 2017 (normalized residuals and their balance).
class Admm : public IterativeSolver {
 public:
  using Options = AdmmOptions;  ///< the name that all solvers give theirs
  /// @param start     z, like A x: what g is a function of
  /// @param x         like x, where minimize() begins; undefined: like z, where A is the identity
  /// @param constant  c, broadcastable to A x; undefined: 0
  /// @throws ValueError for options out of range
  Admm(std::shared_ptr<AdmmModel> model, std::shared_ptr<ProximalMap> g, const Tensor& start, Options options = {},
       const Tensor& x = {}, Tensor constant = {});

  /// x.
  Tensor solution() const override { return x_; }
  /// z, which is exactly sparse, positive or whatever g makes it.
  const Tensor& auxiliary() const { return z_; }
  /// u.
  const Tensor& multiplier() const { return u_; }
  /// rho of each problem.
  const std::vector<double>& penalties() const { return rho_; }

 protected:
  void iterate(IterationRecord& record, Objective objective) override;
  std::vector<double> objective() override;
  bool has_converged(const IterationRecord& record) const override;
  void save(NamedTensors& state) const override;
  void load(const NamedTensors& state) override;

 private:
  void balance(const IterationRecord& record);
  /// Channels that one proximal map of g takes: all of them, or a range along dimension -3.
  struct Block {
    std::shared_ptr<ProximalMap> map;
    std::int64_t first, channels;  // 0 channels: all
    bool has_constant;             // c is not 0 there
  };
  std::vector<Block> blocks() const;
  static Tensor part(const Tensor& all, const Block& block);
  /// Squared lengths in each problem, of what the residuals are made of.
  struct Squares {
    explicit Squares(std::size_t problems)
        : primal(problems), change(problems), dual(problems), constraint(problems), auxiliary(problems), multiplier(problems) {}
    void add(std::size_t problem, const ops::AdmmSums& sums);
    std::vector<double> primal, change, dual, constraint, auxiliary, multiplier;
  };
  /// z and u after A x. In one pass on the CPU, but for what a proximal map does; an L1 norm is part of that pass.
  Squares update(const Tensor& ax, bool is_identity);
  void update_block(const Block& block, const Tensor& a, Squares& squares);
  std::vector<double> squared_lengths(const Tensor& x) const;
  void residuals(const Squares& squares, IterationRecord& record);
  std::vector<double> norms(const Tensor& x) const;

  Options options_;
  std::shared_ptr<AdmmModel> model_;
  std::shared_ptr<ProximalMap> g_;
  Tensor x_, z_, u_, c_;
  std::vector<Block> blocks_;
  std::size_t count_;
  std::vector<double> rho_, constant_norms_;
  std::vector<double> primal_bounds_, dual_bounds_;
};

/// f known by its proximal map, and A the identity.
class ProximalModel : public AdmmModel {
 public:
  /// @param f  its map with step 1/rho is the minimum
  explicit ProximalModel(std::shared_ptr<ProximalMap> f) : f_(std::move(f)) {}
  Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& /*x*/) override { return f_->apply(v, rho.reciprocal()); }
  Tensor value(const Tensor& x) override { return f_->value(x); }
  NamedTensors state() const override { return f_->state(); }
  void load_state(const NamedTensors& state) override { f_->load_state(state); }

 private:
  std::shared_ptr<ProximalMap> f_;
};

/// f known by its proximal map, with a gradient step in the place of the minimum: linearized ADMM,
///
///   x' = prox_f(x - A*(A x - v) / tau, 1/(rho tau)),  tau >= |A|^2
///
/// Source: Parikh & Boyd 2014.
class LinearizedModel : public AdmmModel {
 public:
  /// @param squared_norm  tau, at least |A|^2, for all problems
  /// @throws ValueError unless it is finite and above 0
  LinearizedModel(std::shared_ptr<ProximalMap> f, std::shared_ptr<const LinearMap> map, double squared_norm);
  Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& x) override;
  Tensor value(const Tensor& x) override { return f_->value(x); }
  const LinearMap& map() const override { return *map_; }
  NamedTensors state() const override { return f_->state(); }
  void load_state(const NamedTensors& state) override { f_->load_state(state); }

 private:
  std::shared_ptr<ProximalMap> f_;
  std::shared_ptr<const LinearMap> map_;
  double squared_norm_;
};

/// f(x) = sum w |K x - b|^2 / 2, minimized with the constraint by conjugate gradients from the last x:
/// (K* w K + rho A* A) x = K* w b + rho A* v.
class LeastSquaresModel : public AdmmModel {
 public:
  /// How well each linear system is solved.
  struct Solve {
    double tolerance = 1e-6;            ///< of the relative residual, > 0
    std::int64_t most_iterations = 50;  ///< >= 1
  };
  /// @param data     b, like K x
  /// @param weights  w >= 0, broadcastable to b; undefined: 1
  /// @param map      A; none: the identity
  LeastSquaresModel(std::shared_ptr<const LinearMap> measurement, Tensor data, Solve solve, Tensor weights = {},
                    std::shared_ptr<const LinearMap> map = {});
  Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& x) override;
  Tensor value(const Tensor& x) override;
  const LinearMap& map() const override { return *map_; }

 private:
  Tensor weighted(const Tensor& values) const { return weights_.defined() ? values * weights_ : values; }
  std::shared_ptr<const LinearMap> measurement_, map_;
  Tensor data_, weights_, gathered_;  // K* w b
  Solve solve_;
};

}  // namespace mpol
