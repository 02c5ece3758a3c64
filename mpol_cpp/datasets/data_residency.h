#pragma once

namespace mpol {

/// Where an array is kept while a run goes on.
enum class DataResidency {
  device,  ///< whole on the device: fastest
  host,    ///< in the machine's memory; what is asked for is copied to the device
  disk,    ///< in its file; for arrays larger than memory
};

}  // namespace mpol
