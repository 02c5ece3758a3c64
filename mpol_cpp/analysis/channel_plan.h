#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Where the channels of a cube come from.
struct ChannelSource {
  std::int64_t nchan = 0;       ///< channels, at least 1
  double bytes_of_channel = 0;  ///< of one channel as read, > 0
  /// Channels [begin, end), their number first, on the CPU. It is called on one thread at a time, in the order of channels.
  std::function<Tensor(std::int64_t begin, std::int64_t end)> read;
};

/// How a plan is carried out.
struct ChannelPlanOptions {
  /// Bytes for all blocks that are held at one time: being worked on by each device, read ahead, and waiting to be taken.
  TORCH_ARG(double, memory_budget) = 0x1p30;
  /// Devices that share the blocks, as they come to need one; the CPU may come more than once, each for its part of the threads.
  TORCH_ARG(std::vector<torch::Device>, devices) = {torch::kCPU};
};

/// Operations on the channels of a cube that may be larger than the memory of the device: nothing is read or computed before
/// run(), which does all of them to one block of channels after the other.
///
///     ChannelPlan plan({cube.nchan(), bytes, [&](auto begin, auto end) { return cube.read(begin, end); }});
///     plan.then("deproject", bytes, [&](const Tensor& sky) { return deproject(sky, coords, geometry); })
///         .then("polar", 3 * bytes_of_map, [&](const Tensor& sky) { return integrator.integrate(sky).mean; });
///     plan.run([&](const ChannelPlan::Block& block) { … block.results[0] …; }, ChannelPlanOptions().memory_budget(1e9));
///
/// The next block is read while the devices work. Every operation must treat channels alike and apart, so that results do not
/// depend on the blocks.
class ChannelPlan {
 public:
  /// What an operation makes of the results of the one before (of the first: what was read), tensors that have the channels
  /// first.
  using Operation = std::function<std::vector<Tensor>(const std::vector<Tensor>& block)>;
  /// The same, of an operation that wants to know which channels [begin, end) these are.
  using RangeOperation =
      std::function<std::vector<Tensor>(const std::vector<Tensor>& block, std::int64_t begin, std::int64_t end)>;
  /// The same of one tensor.
  using TensorOperation = std::function<Tensor(const Tensor& block)>;

  /// What comes out of the plan for the channels [begin, end).
  struct Block {
    std::int64_t begin;           ///< the first channel
    std::int64_t end;             ///< the one after the last
    std::vector<Tensor> results;  ///< of the last operation, on the CPU
  };
  /// Takes the results of one block; called once for each, in the order of channels, never twice at a time.
  using Sink = std::function<void(const Block& block)>;

  /// @throws ValueError for a source without channels, bytes or a function
  explicit ChannelPlan(ChannelSource source);

  /// Adds an operation, which gets the block on the device. @param name  for messages
  /// @param bytes_of_channel  what it holds of each channel at its peak beside its input
  /// @throws ValueError for bytes below 0 or not finite
  ChannelPlan& then(std::string name, double bytes_of_channel, Operation operation);
  ChannelPlan& then(std::string name, double bytes_of_channel, RangeOperation operation);   ///< the same of known channels
  ChannelPlan& then(std::string name, double bytes_of_channel, TensorOperation operation);  ///< the same of one tensor

  /// Bytes that one channel takes at the peak of all operations.
  double bytes_of_channel() const;
  /// The smallest memory_budget() that runs it on the options' devices, a channel at a time.
  double least_budget(const ChannelPlanOptions& options) const;
  /// Channels of a block. @throws ValueError where the budget does not hold one channel for each block that is there at a time
  std::int64_t channels_of_block(const ChannelPlanOptions& options) const;

  /// Carries it out. @throws ValueError as above; ShapeError where an operation gives another number of channels; what the
  /// source,
  ///         an operation or the sink throws
  void run(const Sink& sink, const ChannelPlanOptions& options = {}) const;

 private:
  struct Step {
    std::string name;
    double bytes;
    RangeOperation operation;
  };

  std::vector<Tensor> worked_on(Tensor block, std::int64_t begin, torch::Device device) const;

  ChannelSource source_;
  std::vector<Step> steps_;
};

}  // namespace mpol
