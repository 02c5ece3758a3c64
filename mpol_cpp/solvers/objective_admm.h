#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/solvers/admm.h>
#include <mpol_cpp/solvers/objective_model.h>

namespace mpol {

/// Options of ObjectiveAdmm.
struct ObjectiveAdmmOptions {
  double rho = 1e-3;                 ///< the penalty to begin with, beside the curvature of f, > 0; residuals balance it
  double relaxation = 1.8;           ///< of ADMM, 0 < relaxation < 2
  std::int64_t passes = 10;          ///< of the proximal map of g in an iteration, >= 1
  ObjectiveModelOptions model = {};  ///< of the x-step
};

/// ADMM for a ConvexObjective F = f + g, split as f(x) + g(z) with x = z (solvers/admm.h): the x-step is ObjectiveModel's, the
/// z-step the proximal map of total variation and positivity. Its images are z, which g allows.
class ObjectiveAdmm {
 public:
  using Options = ObjectiveAdmmOptions;  ///< its options
  /// @param start  (problems, nchan, npix, npix), where g is finite; is kept and overwritten
  /// @throws ValueError for options out of range
  ObjectiveAdmm(ConvexObjective& function, Tensor start, const Options& options = {});

  /// Evaluates the function at the images, unless that was done; iterate() does it too.
  void prepare();
  /// One iteration; the function was evaluated at the new images last.
  void iterate();

  /// The images, in the storage of `start`.
  const Tensor& images() const { return images_; }
  std::int64_t iterations() const { return static_cast<std::int64_t>(decreases_.size()); }  ///< taken so far
  /// Whether F of every problem stayed within tolerance times `scales` of its present value in the second half of the
  /// iterations: of 32 or more. F of ADMM may rise now and then.
  bool has_converged(double tolerance, const std::vector<double>& scales) const;
  const ObjectiveModel& model() const { return *model_; }  ///< what takes the x-steps

  /// Everything that the next iterations depend on, besides the function and the images.
  NamedTensors state() const;
  /// @throws FileError when shapes do not match
  void load_state(const NamedTensors& state);

 private:
  ConvexObjective& function_;
  Tensor images_, gradient_;          // and f's gradient there
  std::vector<double> regularizers_;  // g at the images; empty: nothing was evaluated yet
  std::shared_ptr<ObjectiveModel> model_;
  std::unique_ptr<Admm> admm_;
  std::vector<std::vector<double>> decreases_;  // of F, of each problem in each iteration
};

}  // namespace mpol
