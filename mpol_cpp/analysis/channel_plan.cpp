#include <mpol_cpp/analysis/channel_plan.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/read_ahead.h>
#include <mpol_cpp/distributed/device_group.h>

namespace mpol {
namespace {

/// A block that was read.
struct ReadBlock {
  std::int64_t begin, end;
  Tensor channels;
};

/// Lets the devices give up their results in the order of channels.
class Turns {
 public:
  /// Waits until all channels before this one were given up. @return false where another device failed
  bool wait_for(std::int64_t channel) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ == channel || failed_; });
    return !failed_;
  }
  void pass_to(std::int64_t channel) {
    set([&] { next_ = channel; });
  }
  void fail() {
    set([&] { failed_ = true; });
  }

 private:
  template <typename Change>
  void set(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_ = 0;
  bool failed_ = false;
};

/// Blocks beside those that devices work on: one that waits, and one that is being read.
constexpr std::int64_t blocks_read_ahead = 2;

}  // namespace

ChannelPlan::ChannelPlan(ChannelSource source) : source_(std::move(source)) {
  if (source_.nchan >= 1 && source_.bytes_of_channel > 0 && std::isfinite(source_.bytes_of_channel) && source_.read) return;
  throw ValueError(fmt::format("a source of {} channels of {} bytes: at least one of each is needed, and a function that reads",
                               source_.nchan, source_.bytes_of_channel));
}

ChannelPlan& ChannelPlan::then(std::string name, double bytes_of_channel, RangeOperation operation) {
  if (!(bytes_of_channel >= 0 && std::isfinite(bytes_of_channel)) || !operation) {
    throw ValueError(
        fmt::format("operation \"{}\" of {} bytes a channel: 0 or more are needed, and a function", name, bytes_of_channel));
  }
  steps_.push_back({std::move(name), bytes_of_channel, std::move(operation)});
  return *this;
}

ChannelPlan& ChannelPlan::then(std::string name, double bytes_of_channel, Operation operation) {
  RangeOperation of_range;
  if (operation) {
    of_range = [operation = std::move(operation)](const std::vector<Tensor>& block, std::int64_t, std::int64_t) {
      return operation(block);
    };
  }
  return then(std::move(name), bytes_of_channel, std::move(of_range));
}

ChannelPlan& ChannelPlan::then(std::string name, double bytes_of_channel, TensorOperation operation) {
  return then(std::move(name), bytes_of_channel, Operation([operation = std::move(operation)](const std::vector<Tensor>& block) {
                return std::vector<Tensor>{operation(block.at(0))};
              }));
}

double ChannelPlan::bytes_of_channel() const {
  double before = source_.bytes_of_channel, most = before;
  for (const auto& step : steps_) {
    most = std::max(most, before + step.bytes);
    before = step.bytes;
  }
  return most;
}

double ChannelPlan::least_budget(const ChannelPlanOptions& options) const {
  return static_cast<double>(options.devices().size()) * bytes_of_channel() + blocks_read_ahead * source_.bytes_of_channel;
}

std::int64_t ChannelPlan::channels_of_block(const ChannelPlanOptions& options) const {
  const auto devices = static_cast<std::int64_t>(options.devices().size());
  const double least = least_budget(options), fit = options.memory_budget() / least;
  if (devices < 1) throw ValueError("a plan on no devices: name at least one");
  if (!(fit >= 1)) {
    throw ValueError(
        fmt::format("a memory budget of {:.4g} bytes for a plan on {} device(s): one channel at a time takes {:.4g} "
                    "bytes; allow as much",
                    options.memory_budget(), devices, least));
  }
  const auto even = (source_.nchan + devices - 1) / devices;  // no device is left without a block
  return std::min(even, static_cast<std::int64_t>(std::min(fit, 1e15)));
}

std::vector<Tensor> ChannelPlan::worked_on(Tensor block, std::int64_t begin, torch::Device device) const {
  const auto count = block.size(0);
  std::vector<Tensor> results;
  results.push_back(block.to(device));
  block.reset();
  for (const auto& step : steps_) {
    results = step.operation(results, begin, begin + count);
    for (const auto& result : results) {
      if (result.defined() && result.dim() > 0 && result.size(0) == count) continue;
      throw ShapeError(
          fmt::format("operation \"{}\" made another number of channels of {}: each must give its own", step.name, count));
    }
  }
  for (auto& result : results) result = result.cpu();
  return results;
}

void ChannelPlan::run(const Sink& sink, const ChannelPlanOptions& options) const {
  const auto at_once = channels_of_block(options);
  DeviceGroup devices(options.devices());
  std::int64_t next = 0;
  ReadAhead<ReadBlock> blocks(
      [&]() -> std::optional<ReadBlock> {
        if (next >= source_.nchan) return std::nullopt;
        const at::NoGradGuard none;
        const auto begin = std::exchange(next, std::min(next + at_once, source_.nchan));
        auto channels = source_.read(begin, next);
        if (channels.dim() < 1 || channels.size(0) != next - begin)
          throw ShapeError(fmt::format("channels [{}, {}) were read as a tensor of shape ({}): channels come first", begin, next,
                                       fmt::join(channels.sizes(), ", ")));
        return ReadBlock{begin, next, std::move(channels)};
      },
      1);
  Turns turns;
  devices.run([&](const std::shared_ptr<Communicator>&, torch::Device device) {
    try {
      const at::NoGradGuard none;
      while (auto block = blocks.take()) {
        Block done{block->begin, block->end, worked_on(std::move(block->channels), block->begin, device)};
        if (!turns.wait_for(done.begin)) return;
        sink(done);
        turns.pass_to(done.end);
      }
    } catch (...) {
      turns.fail();
      throw;
    }
  });
}

}  // namespace mpol
