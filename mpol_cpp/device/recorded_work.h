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
  /// time may load kernels and allocate, which a graph cannot hold. A recording that fails leaves no trace in LibTorch.
  /// @param prepare  runs once before, in the same stream: what must be made there
  /// @throws DeviceError when it cannot be recorded: the message says why
  RecordedWork(torch::Device device, std::function<void()> work, int warm_ups, const std::function<void()>& prepare = {});
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

namespace detail {
/// For tests of what comes after a recording that fails: from now on this runs where a GPU would record, on the CPU, behind the
/// warm-ups that a GPU would make; nothing again with an empty function.
void rehearse_recordings(std::function<void()> instead);
}  // namespace detail

}  // namespace mpol
