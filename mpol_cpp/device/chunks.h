#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <torch/arg.h>
#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// How many items are worked on at once.
struct ChunkOptions {
  ChunkOptions() = default;
  TORCH_ARG(std::int64_t, chunk) = 1 << 20;        ///< items at once
  TORCH_ARG(double, bytes_per_item) = 0;           ///< estimate of what one costs while it is worked on; 0: unknown
  TORCH_ARG(std::string, items) = "visibilities";  ///< what they are, for messages
  TORCH_ARG(torch::Device, device) = torch::kCPU;  ///< where they are worked on, for messages
};

/// The most items that fit into a budget of memory. @throws ValueError unless at least one does
std::int64_t chunk_within(double budget_bytes, double bytes_per_item);

/// Calls a function for [begin, end) of consecutive chunks of `count` items, the last one as long as is left. When the
/// device has no memory for a chunk (c10::OutOfMemoryError), it and all that follow are cut into halves, once.
/// @param function  must leave its results as they were when it throws
/// @throws DeviceError when half a chunk does not fit either: the message has the estimate, the free memory and what to
///         reduce; ValueError unless chunk > 0
void for_each_chunk(std::int64_t count, const ChunkOptions& options,
                    const std::function<void(std::int64_t begin, std::int64_t end)>& function);

/// Sum over items of a function of x, and its gradient, with the memory of one chunk: the same as in one piece but for the
/// rounding of sums.
/// @param part      the sum over items [begin, end), 0-dimensional, differentiable in x
/// @param gradient  overwritten: d sum / d x, of the shape, dtype and device of x
/// @return          the sum, 0-dimensional float64 on the device of x
Tensor value_and_gradient_in_chunks(const Tensor& x, Tensor& gradient, std::int64_t count, const ChunkOptions& options,
                                    const std::function<Tensor(const Tensor& x, std::int64_t begin, std::int64_t end)>& part);

}  // namespace mpol
