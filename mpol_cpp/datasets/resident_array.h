#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/datasets/data_residency.h>
#include <mpol_cpp/serialize/mapped_array.h>

namespace mpol {

/// An array of samples (its first dimension) that is asked for in blocks and gives them on a device, wherever it is kept.
class ResidentArray {
 public:
  /// @param residency  device or host
  /// @throws ValueError for DataResidency::disk, which needs a file
  ResidentArray(const Tensor& array, DataResidency residency, torch::Device device);
  /// Read into memory, onto the device, or not at all.
  ResidentArray(const MappedArray& file, DataResidency residency, torch::Device device);

  DataResidency residency() const { return residency_; }  ///< where it is kept
  std::int64_t rows() const;                              ///< samples
  /// Rows [begin, end). @throws ValueError or c10::Error when they are not there
  Tensor read(std::int64_t begin, std::int64_t end) const;
  /// Rows by number, (n) int64: a batch of a VisibilitySampler.
  Tensor read(const Tensor& indices) const;

 private:
  DataResidency residency_;
  torch::Device device_;
  Tensor array_;                     // on the device or the host, else undefined
  std::optional<MappedArray> file_;  // of disk
};

}  // namespace mpol
