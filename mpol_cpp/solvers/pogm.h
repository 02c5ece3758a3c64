#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/solvers/composite_function.h>

namespace mpol {

namespace ops {
struct PointSums;
enum class PogmEnd : std::int64_t;
}  // namespace ops

/// How the next point is extrapolated from the last ones.
enum class Momentum {
  optimized,  ///< POGM
  fista,      ///< z' = w' + (t_- - 1)/t (w' - w), t_-: the t before, and c' = 1 (Beck & Teboulle 2009)
};

/// What the iterations of Pogm and DevicePogm have in common.
struct PogmNumbers {
  static constexpr std::int64_t first_passes = 4;         ///< of the proximal map, until F would rise
  static constexpr std::int64_t most_passes = 32;         ///< that doubling them ends at, unless an option says another number
  static constexpr std::int64_t fewest_iterations = 64;   ///< before anything counts as converged
  static constexpr double margin_of_curvature = 1.05;     ///< what is multiplied to a curvature that a step showed
  static constexpr double rounding_of_curvature = 1.001;  ///< a step's curvature above the known one by less is rounding
};

/// Options of a Pogm.
struct PogmOptions {
  /// The curvature of f in each image, where it is known; one that is too small is raised. Empty: the function estimates them.
  std::vector<double> curvatures = {};
  /// The most passes of the proximal map in an iteration. Fewer are faster, and end further from the optimum.
  std::int64_t most_passes = PogmNumbers::most_passes;
  /// POGM's own extrapolation, or FISTA's for comparison.
  Momentum momentum = Momentum::optimized;
  /// Sums numbers over the ranks that iterate other channels of the same problems, so that all begin anew together. Empty: none
  /// do.
  std::function<void(std::vector<double>&)> sum_over_ranks = {};
};

/// A saved state of either, on the CPU but for the images.
struct PogmState {
  Tensor problems;                ///< (problems, 4) float64: t, c, passes, how the last iteration ended
  Tensor curvatures;              ///< (problems nchan) float64
  Tensor decreases;               ///< (iterations, problems) float64
  Tensor w, z;                    ///< like the images
  Tensor gradient, regularizers;  ///< like the images, (problems) float64; undefined where the function was not evaluated

  /// @param like  the images
  /// @throws FileError when names or shapes do not match, or another momentum left it
  static PogmState read(const NamedTensors& state, const Tensor& like, Momentum momentum);
  NamedTensors named(Momentum momentum) const;  ///< as read() takes them
};

/// The proximal optimized gradient method for F = f + g, restarted where F would rise:
///
///   w' = y - f'(y)/L                      L: curvature of f in each image, raised where a step shows it to be larger
///   t' = (1 + sqrt(1 + 4 t^2))/2
///   z' = w' + (t-1)/t' (w' - w) + t/t' (w' - y) + (t-1)/(c t') (z - y),   c' = (2 t + t' - 1)/t'
///   y' = argmin_x L |x - z'|^2/(2 c') + g(x)
///
/// One gradient and one proximal map an iteration. Where F would rise, either the map was found too coarsely, or momentum went
/// too far: the problem keeps its y, and the next iteration goes on with the same map from where its passes ended, with twice as
/// many from then on. Where F would rise still, it begins anew with t = 1, c = 1. Differences of F are taken as such, <y' - y,
/// f'(y) + f'(y')>/2 for the quadratic f: F itself has too few digits in float32.
///
/// FISTA differs in z' alone: its gradient at the extrapolated point y + b (y - y_-) is, for the quadratic f, that of the points
/// themselves extrapolated, so that its argument of the proximal map is w' + b (w' - w).
///
/// Source: Taylor, Hendrickx & Glineur 2017; Kim & Fessler 2018 (restart).
class Pogm {
 public:
  /// @param start  (problems, nchan, npix, npix), where g is finite; is kept and overwritten
  Pogm(CompositeFunction& function, Tensor start, PogmOptions options = {});

  /// Evaluates the function at the images, unless that was done; iterate() does it too.
  void prepare();
  /// One iteration. @return which problems moved, one for each
  std::vector<bool> iterate();
  /// A problem stands still from now on: its image stays, whatever others do.
  void hold(std::size_t problem);
  bool is_held(std::size_t problem) const;  ///< whether it does
  /// Holds problems that have settled (has_settled), of 64 iterations or more, unless F may still have far to fall, as it may
  /// while momentum grows.
  /// @param still  which may be held
  void hold_settled(double tolerance, const std::vector<double>& scales, const std::vector<bool>& still);

  /// The images, in the storage of `start`.
  const Tensor& images() const { return y_; }
  std::int64_t iterations() const { return static_cast<std::int64_t>(decreases_.size()); }  ///< taken so far
  /// Whether F fell in every problem by no more than tolerance times `scales` in the second half of the iterations: of 64 or
  /// more. (Measured: F is then within that of the optimum; it is no certificate.)
  /// @param scales  of each problem
  bool has_converged(double tolerance, const std::vector<double>& scales) const;
  /// The same after any number of iterations, for whoever asks for less.
  bool has_settled(double tolerance, const std::vector<double>& scales) const;
  /// The same of one problem; one that is held has. @param scale  its own
  bool has_settled(std::size_t problem, double tolerance, double scale) const;
  /// The curvature of f in each image, as far as it is known by now.
  const std::vector<double>& curvatures() const { return curvatures_; }

  /// Everything that the next iterations depend on, besides the function and the images.
  NamedTensors state() const;
  /// @throws FileError when shapes do not match
  void load_state(const NamedTensors& state);

 private:
  struct Problem {
    double t = 1, c = 1;  // c of FISTA: the t before
    std::int64_t passes = 0;
    ops::PogmEnd end{};  // of the last iteration
  };

  static void begin_anew(Problem& problem);
  /// How far F of a problem has fallen in iterations from..to - 1.
  double fall(std::size_t problem, std::size_t from, std::size_t to) const;
  /// mpol::may_fall_far() of F of a problem.
  bool may_fall_far(std::size_t problem, double allowed) const;
  /// Where f curves more than allowed, of images that mix. @return in which problems
  std::vector<bool> raise_curvatures_together(const std::vector<ops::PointSums>& sums);

  CompositeFunction& function_;
  std::vector<Problem> problems_;
  std::vector<double> curvatures_;  // of each image
  std::int64_t most_passes_;
  Momentum momentum_;
  std::function<void(std::vector<double>&)> sum_over_ranks_;
  Tensor y_, w_, z_, gradient_;
  Tensor next_, next_gradient_;                 // room
  std::vector<double> regularizers_;            // g at y
  std::vector<std::vector<double>> decreases_;  // of F, of each problem in each iteration
};

/// How settle() ended.
enum class Settled {
  yes,          ///< every problem stands still enough
  not_yet,      ///< after the most iterations
  told_to_stop  ///< by `stop`
};

/// What settle() came to.
struct SettledProblems {
  Settled end;                           ///< of all problems together
  std::vector<std::int64_t> iterations;  ///< after which each problem settled; -1 for those that did not
};

/// Iterates until every problem has settled, of 24 iterations or more, or so many were taken: for the many fits of which none
/// needs pixels that stand still. A problem that has settled is held, so that each ends as it would alone.
/// @param scales  asked for when it is looked at, each fourth iteration: see Pogm::has_settled
/// @param stop    asked after each iteration; none: never
SettledProblems settle(Pogm& pogm, std::int64_t most_iterations, double tolerance,
                       const std::function<std::vector<double>()>& scales, const std::function<bool()>& stop = {});
/// What the proximal maps of such fits are worth: PogmOptions::most_passes.
inline constexpr std::int64_t passes_to_settle = 16;

}  // namespace mpol
