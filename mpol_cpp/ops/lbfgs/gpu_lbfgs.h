#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_arrays.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_memory.h>

namespace mpol::ops {

struct GpuLbfgsSettings {
  std::int64_t elements = 0;  // of all parameters together
  torch::Dtype dtype = torch::kFloat32;
  torch::Device device = torch::kCPU;  // a GPU; on the CPU the kernels are emulated, which is slow
  std::int64_t piece = 1024;           // elements of a block
  EmulatedOrder order = EmulatedOrder::ascending;
};

/// torch::optim::LBFGS with its strong Wolfe search (history of 100 pairs, up to 20 iterations a step, no tolerances) as work
/// for a GPU that waits for nothing. History, directions, the state of the line search and all scalars lie on the device.
/// One evaluation of value and gradient is the same launches each time, whatever it is for, so that it can be recorded as a
/// CUDA graph: begin(), then evaluations until at_rest(); those made too many change nothing. Directions are found from the
/// products of the pairs with each other and with the gradient, in float64: the history is read twice an iteration.
class GpuLbfgs {
 public:
  /// Evaluations of a step that does not end before its time.
  static constexpr std::int64_t usual_evaluations = LbfgsLimits::iterations + 1;

  /// Allocates everything. @throws ValueError where the settings do not fit
  explicit GpuLbfgs(const GpuLbfgsSettings& settings);

  /// Begins a step at the present parameters. @param first_trial  of each search along a direction
  void begin(double first_trial);

  /// Puts one evaluation into the current stream.
  /// @param position  (…) of `elements` elements, the parameters: where the evaluation is to be made, updated in place
  /// @param gradient  likewise; `evaluate` writes it
  /// @param values    (n) float64, whose sum is made small; `evaluate` writes them
  void enqueue(const Tensor& position, const Tensor& gradient, const Tensor& values, const std::function<void()>& evaluate);

  /// Whether the step has ended; waits for the device.
  bool at_rest() const;

  /// Waits for the device. Pairs are copied once, however often they are asked for.
  LbfgsMemory memory();
  /// @throws ValueError for vectors of another size, or more pairs than the history holds
  void restore(const LbfgsMemory& memory);

  std::int64_t memory_bytes() const;

 private:
  struct Pair {
    Tensor move, change;
  };

  template <typename T>
  LbfgsArrays<T> arrays(const Tensor& position, const Tensor& gradient, const Tensor& values) const;
  void run(const std::vector<LbfgsKernel>& kernels, const Tensor& position, const Tensor& gradient, const Tensor& values) const;
  void check_vector(const Tensor& tensor, const char* name) const;
  LbfgsState read_state() const;
  void write_state(const LbfgsState& state);

  GpuLbfgsSettings settings_;
  std::int64_t pieces_, groups_;
  Tensor origin_, direction_, start_gradient_, kept_, moves_, changes_;
  Tensor piece_values_, group_products_, move_change_, change_change_, inverse_, gradient_products_, factors_;
  Tensor state_, phase_, rate_;
  double first_trial_ = 0;
  std::map<std::int64_t, Pair> copied_;  // pairs by number
};

}  // namespace mpol::ops
