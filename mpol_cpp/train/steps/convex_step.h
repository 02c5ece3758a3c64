#pragma once

#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/train/steps/step.h>

namespace mpol {

namespace detail {
/// Names in the state of such a step, beside those of its solver.
inline constexpr const char* losses_name = "losses";
inline constexpr const char* dual_name = "tv_dual";

/// The state of a solver whose parts are images as that of their cubes, so that ranks with other channels can join theirs
/// (ChannelState): images are (…, problems, nchan, npix, npix), and numbers of each part become NAME_of_channels, (…, problems,
/// nchan). As it is where parts are problems.
NamedTensors cube_state(const ConvexObjective& function, const NamedTensors& state);
/// The inverse.
NamedTensors part_state(const ConvexObjective& function, const NamedTensors& state);
}  // namespace detail

/// A model and an objective as such a function. @param optimizer  which wants it  @param parts  as in ConvexObjective
/// @throws ValueError unless the objective is convex in the model's base pixels
ConvexObjective convex_function(const std::shared_ptr<ImageModel>& model, const Objective& objective,
                                const std::string& optimizer, Parts parts, CubeProximal::By by = CubeProximal::By::kernels);

/// An iteration of a solver of convex objectives as a step: an epoch. The learning rate is not looked at.
class ConvexStep : public Step {
 public:
  StepReport take(double learning_rate) override;
  void set_stopped(const std::vector<bool>& stopped) override;
  void hold_settled(const std::vector<bool>& still) override;
  bool has_converged() const override;
  bool waits_for_device() const override { return true; }
  std::optional<double> gap() override;
  StepKind kind() const override { return StepKind::eager; }
  std::string reason() const override { return name_; }
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 protected:
  /// @throws ValueError unless the objective is convex in the model's base pixels (ConvexObjective)
  ConvexStep(const std::shared_ptr<ImageModel>& model, const Objective& objective, const TrainOptions& options, Parts parts);

  ConvexObjective& function() { return *function_; }

 private:
  /// Evaluates the function at the images, unless that was done.
  virtual void prepare() = 0;
  /// One iteration, which evaluates the function at its new images last. @return which problems have taken these
  virtual std::vector<bool> iterate() = 0;
  virtual bool has_settled(double tolerance, const std::vector<double>& scales) const = 0;
  /// Holds images apart that stand still and have settled.
  virtual void hold(double, const std::vector<double>&, const std::vector<bool>&) {}
  virtual NamedTensors solver_state() const = 0;
  virtual void load_solver_state(const NamedTensors& state) = 0;

  std::string name_;  // of the optimizer
  std::unique_ptr<ConvexObjective> function_;
  std::vector<double> losses_;  // columns problems, of the present images; empty: not known yet
  double tolerance_;
  std::shared_ptr<Communicator> ranks_;  // that hold other channels of the same problems
};

}  // namespace mpol
