#pragma once

#include <filesystem>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Where the kernels of a NormalOperator lie: in memory, or in files of a folder, for cubes whose kernels memory cannot hold.
/// The system keeps what it has room for of these files in memory; a step reads the kernels of one channel after the other. The
/// files have no name and are gone with the last tensor that uses them, also when the process is killed.
struct KernelStorage {
  std::filesystem::path folder = {};  ///< empty: memory

  /// Zeros on the CPU. @throws FileError when the folder cannot be written to or has no room for them
  Tensor zeros(at::IntArrayRef shape, torch::Dtype dtype) const;
  /// A copy of a tensor of the CPU, in another dtype if need be.
  Tensor copy(const Tensor& values, torch::Dtype dtype) const;
};

/// Whether another tensor holds the same values: they must be copied before they are changed or given away.
inline bool is_shared(const Tensor& tensor) { return tensor.use_count() > 1 || tensor.storage().use_count() > 1; }

}  // namespace mpol
