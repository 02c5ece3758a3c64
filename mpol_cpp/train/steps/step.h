#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/train/steps/engines/step_report.h>

namespace mpol {

/// One way of evaluating the objective and updating the parameters once. It owns the optimiser's state.
class Step {
 public:
  virtual ~Step() = default;

  /// @param learning_rate  of all problems, times TrainOptions::rate_factors of each
  virtual StepReport take(double learning_rate) = 0;
  /// `count` steps, the same as one by one, with less work for the host where the step knows how.
  /// @return the report of each, in their order
  virtual std::vector<StepReport> take_several(double learning_rate, std::int64_t count);
  /// Which problems stand still from now on, parameters and optimiser's state alike; their losses are still reported.
  /// @param stopped  one for each problem
  /// @throws ValueError unless the step was made with TrainOptions::stops_each()
  virtual void set_stopped(const std::vector<bool>& stopped) = 0;
  /// Whether it stops problems by TrainOptions::stop_relative itself, on its device, in the epochs in which
  /// detail::ProblemStops does: then steps may follow each other before anybody has looked at their losses.
  virtual bool stops_by_itself() const { return false; }
  /// What the criterion of such a step goes on from. @param totals (epochs, problems), of the last ones that were done
  /// @throws ValueError for a step that does not stop problems by itself
  virtual void set_totals(const Tensor& totals);
  /// Images that stand still are held from now on, where each has an end of its own and has come to it.
  /// @param still  of each image, (problems, nchan); empty: none is known to
  virtual void hold_settled(const std::vector<bool>&) {}
  /// Whether it has come to the end by a criterion of its own.
  virtual bool has_converged() const { return false; }
  /// How far the objective, summed over problems, can at most be above its minimum; nothing where that is not known.
  virtual std::optional<double> gap() { return std::nullopt; }
  /// Whether each step waits for the device, so that nothing is gained by looking at several at once.
  virtual bool waits_for_device() const { return false; }
  virtual StepKind kind() const = 0;
  /// Why this kind of step was taken.
  virtual std::string reason() const = 0;

  /// The optimiser's state by name, in tensors that later steps leave alone.
  virtual NamedTensors state() const = 0;
  /// Takes up such a state, from any device. @throws FileError when names or shapes do not match the parameters
  virtual void load_state(const NamedTensors& state) = 0;
};

}  // namespace mpol
