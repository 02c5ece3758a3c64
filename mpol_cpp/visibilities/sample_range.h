#pragma once

#include <cstdint>
#include <string>

namespace mpol {

/// Samples [begin, end) of each channel that have something in common.
struct SampleRange {
  std::string name;                 ///< what that is: "spw 3", "evening.ms, spw 3"
  std::int64_t begin = 0, end = 0;  ///< of the samples
  double frequency = 0;             ///< their mean, Hz; 0: it is not known
};

}  // namespace mpol
