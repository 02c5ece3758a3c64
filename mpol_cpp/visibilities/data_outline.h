#pragma once

#include <cstdint>
#include <utility>

#include <torch/types.h>

#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// What is known of visibilities without their samples and baselines.
struct DataOutline {
  Tensor frequencies;       ///< of the channels, (nchan) float64 Hz, or undefined when unknown
  Observation observation;  ///< what the file says besides
  std::int64_t nchan = 1;   ///< channels of the data
  std::int64_t nvis = 0;    ///< samples of one channel

  /// @param channel_frequencies  as above
  DataOutline(Tensor channel_frequencies, Observation of_what, std::int64_t channels, std::int64_t samples)
      : frequencies(std::move(channel_frequencies)), observation(std::move(of_what)), nchan(channels), nvis(samples) {}
  /// That of visibilities, which a function that looks no further takes as well.
  DataOutline(const Visibilities& visibilities)  // NOLINT(google-explicit-constructor)
      : DataOutline(visibilities.frequencies(), visibilities.observation(), visibilities.nchan(), visibilities.nvis()) {}
};

}  // namespace mpol
