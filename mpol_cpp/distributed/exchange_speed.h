#pragma once

#include <torch/types.h>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// How fast ranks exchange tensors.
struct ExchangeSpeed {
  double seconds = 0;           ///< that an exchange takes, however small
  double bytes_per_second = 0;  ///< of larger ones, of which each rank has so many bytes

  /// What a broadcast and a sum over ranks of so many bytes take, seconds.
  double seconds_of_both(double bytes) const { return 2 * (seconds + bytes / bytes_per_second); }
};

/// Measures it in a few exchanges of 4 MiB, those of a step that goes through shared samples: a broadcast and a sum. Called by
/// every rank. @param device  where tensors lie; those of one that the ranks do not take go by the CPU
ExchangeSpeed measure_exchange(Communicator& ranks, torch::Device device);

}  // namespace mpol
