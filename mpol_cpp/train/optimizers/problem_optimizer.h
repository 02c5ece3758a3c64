#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/train/optimizers/moments.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::detail {

/// @throws ValueError unless there are no rate_factors, or one for each problem
void check_rate_factors(const TrainOptions& options, std::int64_t problems);

/// Adam and gradient descent as torch::optim's, but with a learning rate and an end of its own for each problem of a batch.
/// Its state is theirs.
class ProblemOptimizer {
 public:
  /// @param parameters  each (problems…, …), with the problems in its leading dimensions
  /// @throws ValueError where one has others, for rate factors of another number, and for L-BFGS
  ProblemOptimizer(const TrainOptions& options, const std::vector<NamedParameter>& parameters,
                   const std::vector<std::int64_t>& problems);

  void zero_gradients();
  /// Moves the parameters by their gradients.
  void update(double learning_rate);
  /// @throws ValueError unless there is one flag for each problem
  void set_stopped(const std::vector<bool>& stopped);

  NamedTensors state() const { return save_moments(kind_, moments_, steps_); }
  void load_state(const NamedTensors& state) { steps_ = load_moments(kind_, moments_, state); }

 private:
  /// (problems…) spread over the dimensions of a parameter.
  Tensor over(const Tensor& of_problems, const Tensor& parameter) const;
  void update(const Moments& moments, double learning_rate);
  /// What the learning rate is multiplied by.
  Tensor adam_direction(const Moments& moments, const Tensor& gradient, const Tensor& goes_on) const;
  Tensor descent_direction(const Moments& moments, const Tensor& gradient, const Tensor& goes_on) const;

  OptimizerKind kind_;
  double momentum_;
  Betas betas_;
  std::vector<std::int64_t> problems_;
  std::vector<Moments> moments_;
  Tensor factors_;  // (problems…) float64
  Tensor goes_on_;  // (problems…) bool
  std::int64_t steps_ = 0;
};

}  // namespace mpol::detail
