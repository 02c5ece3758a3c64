#pragma once

#include <cstdint>
#include <functional>

#include <torch/types.h>

#include <mpol_cpp/serialize/safetensors.h>

namespace mpol::losses::detail {

/// How many samples of a channel are worked on at once: so many as were asked for, or as a budget holds at the first use; half of
/// them for good whenever memory does not suffice after all.
class ChunkSize {
 public:
  /// @param nvis    samples of a channel, of the longest block of data
  /// @param given   samples of a chunk; 0: by the budget
  /// @param budget  bytes; 0: half of the memory that is free on the device at the first use
  /// @throws ValueError for a chunk or budget < 0
  ChunkSize(std::int64_t nvis, std::int64_t given, double budget);

  /// What a chunk needs of a device's memory, bytes.
  struct Needs {
    double whole = 0;       ///< of all samples in one piece
    double per_sample = 0;  ///< of each sample of a chunk
  };

  std::int64_t samples() const { return samples_; }  ///< of a chunk; 0 before it is chosen
  bool is_whole() const { return samples_ == nvis_; }

  /// The first time the chunk of the budget, with a warning where not all samples fit into it.
  /// @return whether they did not
  bool choose(torch::Device device, const Needs& needs);
  /// `chunk`: samples of a chunk, () int64, once it is chosen: what a checkpoint has to know.
  NamedTensors state() const;
  /// @throws FileError for what is no such state
  void load(const NamedTensors& state);

  /// Calls `work` until it did not run out of memory: each time it did, `give_back` is called and the chunk halved, the first
  /// time with a warning.
  /// @throws DeviceError when not even a few samples fit
  void try_out(torch::Device device, const std::function<void()>& work, const std::function<void()>& give_back);

 private:
  void halve(torch::Device device);

  std::int64_t nvis_, samples_;
  double budget_;
  bool has_halved_ = false;
};

}  // namespace mpol::losses::detail
