#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mpol {

/// What an iteration came to; every list has one number for each problem, or none where a solver has no such thing.
struct IterationRecord {
  std::int64_t iteration = 0;                          ///< from 1
  std::vector<double> objective;                       ///< F after the iteration, where it was taken
  std::vector<double> primal_residual, dual_residual;  ///< relative, compared with the tolerance
  std::vector<double> rho;                             ///< penalty of ADMM, curvature of FISTA
  double seconds = 0;                                  ///< since solve() was called
};

/// What a callback wants.
enum class Proceed {
  go_on,  ///< the next iteration
  stop    ///< an end after this one
};

/// Is called after every iteration, and may end the run. Where there is one the objective is taken in every iteration.
using IterationCallback = std::function<Proceed(const IterationRecord&)>;

/// A callback that gives one line of text for each iteration, and a heading first; of several problems the worst numbers.
IterationCallback iteration_table(std::function<void(std::string_view line)> sink);

/// How a run ended.
struct SolverReport {
  std::int64_t iterations = 0;             ///< taken in all, those before a loaded state among them
  std::int64_t pairs = 0;                  ///< linear maps with their adjoints that were taken: gradients, linear solves
  bool converged = false;                  ///< all problems
  std::vector<double> objective;           ///< of each problem at the end
  std::optional<std::vector<double>> gap;  ///< above the least objective at most, of each problem, where a bound is known
  std::map<std::string, double> seconds;   ///< of each stage and "total", as the host saw them: a GPU may still be at work
};

}  // namespace mpol
