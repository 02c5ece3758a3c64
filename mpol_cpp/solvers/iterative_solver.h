#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/proximal/problem_values.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/solvers/solver_report.h>

namespace mpol {

/// What every iterative solver is asked for.
struct IterationOptions {
  std::int64_t most_iterations = 1000;  ///< >= 1, together with those before a saved state
  double tolerance = 1e-4;              ///< of the relative residuals of every problem, >= 0; 0: takes all iterations
  IterationCallback callback = {};      ///< called after every iteration; empty: nothing is
  std::int64_t problem_dims = 3;        ///< last dimensions that make one problem, >= 3
};

/// Iterations on problems in leading dimensions, until all of them have converged; those that have go on with the others.
class IterativeSolver {
 public:
  virtual ~IterativeSolver() = default;
  IterativeSolver(const IterativeSolver&) = delete;
  IterativeSolver& operator=(const IterativeSolver&) = delete;

  /// Iterates until all problems have converged, the callback says stop, or there were `most_iterations`.
  /// @throws DivergedError when a residual is no finite number any more
  SolverReport solve();
  /// One iteration by itself, whatever most_iterations is. @throws DivergedError when a residual is no finite number any more
  IterationRecord take();
  std::int64_t iterations() const { return iterations_; }  ///< taken so far, those before a loaded state among them
  /// The solution as far as it is known.
  virtual Tensor solution() const = 0;

  /// Everything that the next iterations depend on, besides what the solver was made of: one that loads it goes on as this one
  /// does, to the last bit.
  NamedTensors state() const;
  /// @throws FileError when shapes do not match
  void load_state(const NamedTensors& state);

 protected:
  /// Whether an iteration also takes the objective, which may cost as much as the iteration.
  enum class Objective {
    skip,  ///< nobody asks for it
    take   ///< a callback wants it
  };
  /// Counts the time until it goes as that of a stage.
  class Stage {
   public:
    /// Begins to count. @param name  of the stage in SolverReport::seconds; lives as long as this
    Stage(IterativeSolver& solver, const char* name) : solver_(solver), name_(name) {}
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

   private:
    IterativeSolver& solver_;
    const char* name_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  /// @throws ValueError for options out of range
  IterativeSolver(std::string name, IterationOptions options);
  /// One iteration; fills all but the record's number and time.
  virtual void iterate(IterationRecord& record, Objective objective) = 0;
  /// F of each problem at the solution.
  virtual std::vector<double> objective() = 0;
  /// Whether all residuals are small enough.
  virtual bool has_converged(const IterationRecord& record) const;
  /// A bound on how far F of each problem is above its minimum; nothing where none is known.
  virtual std::optional<std::vector<double>> gap() { return std::nullopt; }
  virtual void save(NamedTensors& state) const = 0;  ///< adds what the solver itself goes on from
  /// Takes up what save() added. @throws FileError when shapes do not match
  virtual void load(const NamedTensors& state) = 0;

  /// A tensor of a saved state that must be like another one. @throws FileError unless it is
  Tensor saved(const NamedTensors& state, const std::string& name, const Tensor& like) const;
  /// Numbers of a saved state. @throws FileError unless there are so many
  std::vector<double> saved_numbers(const NamedTensors& state, const std::string& name, std::size_t count) const;

  std::int64_t problem_dims() const { return options_.problem_dims; }  ///< last dimensions that make one problem
  /// The sum of each problem's values, float64.
  std::vector<double> sums(const Tensor& x) const { return on_host(problem_sums(x, problem_dims())); }
  /// Values of each problem from (…) of three dimensions, added up where a problem has more.
  std::vector<double> added(const Tensor& values, std::int64_t problems) const;
  /// Numbers, one for each problem, as a tensor that multiplies x.
  Tensor factor(const std::vector<double>& values, const Tensor& x) const { return as_factor(values, x, problem_dims()); }
  /// `values` where moved is set, `others` elsewhere.
  Tensor chosen(const std::vector<bool>& moved, const Tensor& values, const Tensor& others) const;

  std::int64_t pairs_ = 0;  ///< SolverReport::pairs so far: a solver counts its own

 private:
  IterationRecord next(Objective objective);

  std::string name_;
  IterationOptions options_;
  std::int64_t iterations_ = 0;
  std::map<std::string, double> seconds_;
};

}  // namespace mpol
