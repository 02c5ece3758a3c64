#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/types.h>

// Streams and events of whatever accelerator LibTorch has, through its own interface: no CUDA header is needed.
namespace mpol::detail {

/// Whether operations compute there: on the CPU and on every accelerator that LibTorch knows and that is loaded, not on Meta.
bool can_compute(torch::Device device);

/// Whether work on the device is put into streams (GPUs), not done at once (the CPU) or never (Meta).
bool has_streams(torch::Device device);

/// The stream that work on the device goes to now.
c10::Stream current_stream(torch::Device device);
/// A stream of its own for copies.
c10::Stream side_stream(torch::Device device);

enum class EventTiming { on, off };

/// An event at the end of what the current stream was given so far.
c10::Event record_event(torch::Device device, EventTiming timing);

}  // namespace mpol::detail
