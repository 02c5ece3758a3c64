#pragma once

#include <memory>
#include <vector>

#include <mpol_cpp/solvers/iterative_solver.h>
#include <mpol_cpp/solvers/smooth_function.h>

namespace mpol {

/// Options of a Fista.
struct FistaOptions : IterationOptions {
  /// What is done where a step would let F rise.
  enum class Variant {
    plain,                       ///< F may rise for some iterations
    restart,                     ///< a step that would let F rise is not taken, and momentum begins anew
    monotone                     ///< a step that would let F rise is not taken, but gives the momentum its direction
  } variant = Variant::restart;  ///< which of these
  /// Whether curvatures are raised.
  enum class Backtracking {
    off,                               ///< as they are given
    on                                 ///< where f shows one to be larger than was thought
  } backtracking = Backtracking::off;  ///< of every problem
  double backtracking_factor = 2;      ///< > 1
  /// The curvature of f in each problem, or one for all, > 0; with backtracking a lower one will do. Empty: f estimates them.
  std::vector<double> curvatures = {};
};

/// The fast iterative shrinkage-thresholding algorithm for F = f + g, each problem with its own curvature L, momentum and
/// restart:
///
///   x' = prox_g(y - f'(y)/L, 1/L),  t' = (1 + sqrt(1 + 4 t^2))/2,  y' = x' + (t-1)/t' (x' - x)
///
/// One gradient and one proximal map an iteration, and one value of f but with the plain variant. It has converged when
/// |x' - y| <= tolerance |x'|.
/// Source: Beck & Teboulle 2009 (also for the monotone variant); O'Donoghue & Candes 2015 (restart).
class Fista : public IterativeSolver {
 public:
  using Options = FistaOptions;  ///< the name that all solvers give theirs
  /// @param start  (…, channels, rows, columns), where g is finite
  /// @throws ValueError for options out of range
  Fista(std::shared_ptr<SmoothFunction> f, std::shared_ptr<ProximalMap> g, const Tensor& start, Options options = {});

  Tensor solution() const override { return x_; }
  /// The curvature of each problem, as far as it is known.
  const std::vector<double>& curvatures() const { return curvatures_; }

 protected:
  void iterate(IterationRecord& record, Objective objective) override;
  std::vector<double> objective() override;
  std::optional<std::vector<double>> gap() override;
  void save(NamedTensors& state) const override;
  void load(const NamedTensors& state) override;

 private:
  struct Point {
    Tensor x;
    std::vector<double> smooth, simple;  // f and g, where they were asked for
  };
  Point proximal_step(const Tensor& gradient, const std::vector<double>& at_y);
  bool needs_values() const { return options_.variant != Options::Variant::plain; }

  Options options_;
  std::shared_ptr<SmoothFunction> f_;
  std::shared_ptr<ProximalMap> g_;
  Tensor x_, y_;
  std::size_t count_;
  std::vector<double> momenta_, curvatures_;  // t and L of each problem
  std::vector<double> values_;                // F at x, unless empty
};

}  // namespace mpol
