#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/train/optimizers/moments.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::detail {

/// @throws ValueError unless there are no rate_factors, or one for each problem
void check_rate_factors(const TrainOptions& options, std::int64_t problems);

/// Adam and gradient descent as torch::optim's, whose numbers all lie on the device, so that a step can be recorded: learning
/// rate, counter, moments, and where problems of a batch have a learning rate and an end of their own, these. Its saved state is
/// torch::optim's.
class MomentOptimizer {
 public:
  /// @param parameters  one or more, on one device
  /// @param problems    the leading dimensions of each parameter, where problems have updates of their own; else empty
  /// @throws ValueError where a parameter has other leading dimensions, for rate factors of another number, and for L-BFGS
  MomentOptimizer(const TrainOptions& options, const std::vector<NamedParameter>& parameters,
                  const std::vector<std::int64_t>& problems);

  /// Sets the rate of the next updates; each problem's is its factor of it.
  void set_learning_rate(double learning_rate);
  /// Moves the parameters, without waiting for the device. What it writes is in changed() alone.
  /// @param gradients  of each parameter; an undefined one leaves its parameter as it is
  void update(const std::vector<Tensor>& gradients);
  /// Counts updates that were made or replayed, for state().
  void count(std::int64_t updates) { steps_ += updates; }
  /// The tensors that update() writes.
  std::vector<Tensor> changed() const;
  /// @throws ValueError unless there is one flag for each of the problems with updates of their own
  void set_stopped(const std::vector<bool>& stopped);

  NamedTensors state() const { return save_moments(kind_, moments_, steps_); }
  void load_state(const NamedTensors& state);

 private:
  bool has_own_updates() const { return goes_on_.defined(); }
  /// (problems…) spread over the dimensions of a parameter.
  Tensor over(const Tensor& of_problems, const Tensor& parameter) const;
  /// What stopped problems have in place of a new value.
  Tensor kept_where_stopped(const Tensor& value, const Tensor& before) const;
  void update(const Moments& moments, const Tensor& gradient);
  void update_with_fused_adam(const std::vector<Tensor>& gradients);
  /// What the learning rate is multiplied by.
  Tensor adam_direction(const Moments& moments, const Tensor& gradient) const;
  Tensor descent_direction(const Moments& moments, const Tensor& gradient) const;

  OptimizerKind kind_;
  double momentum_;
  Betas betas_;
  std::vector<std::int64_t> problems_;
  std::vector<Moments> moments_;
  bool has_fused_adam_;    // LibTorch's, for float32 parameters of problems that go on together
  Tensor factors_;         // (problems…) float64
  Tensor goes_on_;         // (problems…) bool; undefined where problems have no updates of their own
  Tensor rate_, counter_;  // (problems…), (); float64, or float32 for the fused Adam
  std::int64_t steps_ = 0;
};

}  // namespace mpol::detail
