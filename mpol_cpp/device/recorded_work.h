#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <torch/types.h>

namespace mpol {

/// Work on a GPU that is recorded once, as a CUDA graph, and replayed with a single launch. What it reads and writes keeps
/// its place in memory; nothing in it may wait for the device or choose by a value that lies there. On a device without
/// streams (the CPU) nothing is recorded: each replay does the work anew.
class RecordedWork {
 public:
  /// Records without running it, in a stream of its own, after running it `warm_ups` times there: what runs for the first
  /// time may load kernels and allocate, which a graph cannot hold.
  /// @throws DeviceError when it cannot be recorded: the message says why
  RecordedWork(torch::Device device, std::function<void()> work, int warm_ups);
  ~RecordedWork();
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;

  /// Puts it into the current stream.
  void replay();
  /// Kernels, copies and fills in the recording; 0 where nothing is recorded.
  std::int64_t launches() const;

 private:
  class Graph;
  std::function<void()> work_;
  std::unique_ptr<Graph> graph_;  // null where nothing is recorded
};

}  // namespace mpol
